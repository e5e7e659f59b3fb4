"""Instances that are shelved and unshelved, in a cloud of several conductors, cells and agents.

Where a rule keeps something from going wrong, the schedule is played without the rule too, and must break a
promise then.
"""

from contextlib import contextmanager

import pytest

from roost.model.instance import (
    ACTIVE,
    SHELVED,
)
from support.simulation.cloud_world import KINDS, CloudWorld
from support.simulation.scripted import NONE, Scripted
from support.simulation.seeds import simulate

ONE = "instance0"
SCHEDULES = 8
"""Of each kind, in every run."""


@contextmanager
def cloud_of_one(faults=NONE, seed=1, *, shelved=False, **named):
    """A cloud of a cell with three hosts, and one instance, which is ``shelved`` or runs."""
    with Scripted(faults, seed, **{"cells": ("c1",), "hosts": 3} | named) as cloud:
        cloud.request(ONE)
        cloud.wait_for(ONE, ACTIVE)
        if shelved:
            cloud.shelve(ONE)
            cloud.wait_for(ONE, SHELVED)
        yield cloud


def test_an_instance_is_shelved_and_runs_again_as_its_next_attempt_with_another_consumer():
    with cloud_of_one() as cloud:
        cloud.shelve(ONE)
        shelved = cloud.wait_for(ONE, SHELVED)
        assert (shelved.host, shelved.selection, cloud.guests.running(ONE)) == (None, None, [])
        assert cloud.placement.held(ONE) is None
        cloud.wait(400.0)
        assert cloud.row(ONE).state == SHELVED
        consumer = cloud.unshelve(ONE)
        row = cloud.wait_for(ONE, ACTIVE)
        assert (row.attempt, row.consumer, row.shelf) == (2, consumer, None)
        assert cloud.placement.held(consumer) is not None and cloud.placement.held(ONE) is None
        cloud.finish()


@pytest.mark.parametrize("kind", ["shelves", "shelves under crashes"])
def test_every_promise_is_kept_in_every_schedule_with_shelves(kind):
    simulate(lambda seed: CloudWorld(KINDS[kind], seed, audits=seed % 4 == 0), range(SCHEDULES), kind)
