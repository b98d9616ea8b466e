"""The invented shop and the conversations behind the packaged sample runs."""
