"""Labelled samples for `bench/redaction.py`."""
