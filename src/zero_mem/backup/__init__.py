"""Backups made while a store is in use, checked, and restored whole (`prod:backup`)."""

from __future__ import annotations

from zero_mem.backup.making import back_up
from zero_mem.backup.reports import BackupReport, Counts, RestoreReport, Verification
from zero_mem.backup.restoring import restore_file, restore_into
from zero_mem.backup.schedule import Schedule
from zero_mem.backup.verifying import verify, verify_file

__all__ = [
    "BackupReport",
    "Counts",
    "RestoreReport",
    "Schedule",
    "Verification",
    "back_up",
    "restore_file",
    "restore_into",
    "verify",
    "verify_file",
]
