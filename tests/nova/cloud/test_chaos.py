"""A real Nova cloud on Roost's scheduler, while schedulers, the broker and a database are killed.

ROOST_NOVA_OPERATIONS is the number of operations; ROOST_SEED repeats a run.
"""

import os
import sys

import pytest

from support.nova_cloud.chaos import NovaChaos
from support.nova_cloud.cloud import NovaCloud
from support.nova_cloud.repeater import Repeater
from support.seeds import nightly_seed

pytestmark = pytest.mark.nightly

OPERATIONS = int(os.environ.get("ROOST_NOVA_OPERATIONS", "150"))
SHARE = 0.25


def test_claims_are_right_after_kills_and_calls_that_arrive_twice(cloud: NovaCloud) -> None:
    chaos = NovaChaos(cloud, OPERATIONS, nightly_seed())
    with Repeater(cloud.broker.url(), SHARE, nightly_seed()) as repeater:
        chaos.run()
        chaos.settle()
    print(f"{dict(chaos.done)}, refused {dict(chaos.refused)}, {repeater.repeated} twice", file=sys.stderr)
    assert repeater.repeated
    # Claims that nobody answered for are freed by the bridge's audit, when they are older than its timeout.
    cloud.wait_for(cloud.audited, seconds=180.0)
    cloud.judge()
    chaos.check()
    cloud.delete(*cloud.instances())
    cloud.judge()
