"""Super conductors, cells and users in drawn schedules; and faults that the schedules must find."""

import pytest

from machine.simulation import faults
from machine.simulation.cell_world import KINDS as CELL_KINDS
from machine.simulation.cell_world import CellWorld
from machine.simulation.cloud_world import KINDS, CloudWorld
from machine.simulation.seeds import finds, simulate
from support.seeds import nightly_seed

SCHEDULES = 2
"""Of each kind, in every run."""

FAULTS = {"no fence": faults.NO_FENCE, "no tombstone": faults.NO_TOMBSTONE}


@pytest.mark.parametrize("kind", KINDS)
def test_every_promise_is_kept_in_every_schedule(kind):
    simulate(lambda seed: CloudWorld(KINDS[kind], seed), range(SCHEDULES), kind)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_every_promise_is_kept_in_every_schedule_at_length(kind):
    first = nightly_seed() * 1_000_000
    simulate(lambda seed: CloudWorld(KINDS[kind], seed), range(first, first + 1_000), kind)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_is_put_in_is_found(name):
    # The first seeds are those that find it now; the others are there for when schedules change.
    assert finds(lambda seed: CloudWorld(KINDS["pauses"], seed, FAULTS[name]), range(20, 120))


def test_a_guest_that_is_started_without_a_confirmation_is_found():
    kind = CELL_KINDS["pauses"]
    found = finds(lambda seed: CellWorld(kind, seed, faults.NO_CONFIRMATION), range(16, 100))
    assert "while it runs as" in found
