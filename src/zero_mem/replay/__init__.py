"""Replays of real agent runs: strategies side by side, measured on the same messages."""
