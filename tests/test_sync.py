"""Two stores exchange their journals (`op:sync`)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from sync_machine import SyncMachine

pytestmark = pytest.mark.req("op:sync")

TestSyncMachine = SyncMachine.TestCase
TestSyncMachine.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
