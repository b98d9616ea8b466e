"""The release questions, answered from what a store really holds (`prod:doctor`)."""

from __future__ import annotations

from zero_mem.doctor.answers import Answer, Diagnosis
from zero_mem.doctor.questions import examine

__all__ = ["Answer", "Diagnosis", "examine"]
