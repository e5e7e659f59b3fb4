"""What ``/readyz`` of `roost nova-scheduler` says of the message broker."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from roost.server.parts.nova import NovaCallsPart


@pytest.mark.parametrize(
    ("loaded", "listening", "connected", "reason"),
    [
        (False, False, False, "no call is taken before the hosts are read"),
        (True, False, False, "no call is taken: the message broker is being connected, or the process ends"),
        (True, True, False, "no message of the broker has arrived for 9 s"),
        (True, True, True, None),
    ],
)
def test_why_no_calls_are_taken(loaded: bool, listening: bool, connected: bool, reason: str | None) -> None:
    server = SimpleNamespace(listening=listening, connected=connected, silent_seconds=9.0)
    process = SimpleNamespace(
        options=SimpleNamespace(is_shadow=False), nova_feed=SimpleNamespace(is_loaded=loaded), nova_rpc=server
    )
    [check] = NovaCallsPart().readiness(cast(Any, process))
    assert check.judge is not None
    assert check.judge(None) == reason
