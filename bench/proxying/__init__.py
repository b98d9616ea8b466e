"""What the measurements of the proxy share: requests, and an upstream to send them to."""
