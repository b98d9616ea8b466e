"""Recall of evidence: the sets, and what is measured on them."""
