"""Super conductors, cells and users in drawn schedules; and faults that the schedules must find."""

import pytest

from support.seeds import nightly_seed
from support.simulation import faults
from support.simulation.cell_world import CellWorld
from support.simulation.cloud_world import CloudWorld
from support.simulation.kinds import CELL_KINDS, CLOUD_KINDS
from support.simulation.seeds import finds, simulate

SCHEDULES = 24
"""Of each kind, in every run."""

AUDITED = 4
"""Of so many schedules one has conductors that audit. To wait for their rounds takes as long as the storm."""

FAULTS = {"no fence": faults.NO_FENCE, "no tombstone": faults.NO_TOMBSTONE}
CELL_FAULTS = {"no generation": faults.NO_GENERATION, "no confirmation": faults.NO_CONFIRMATION}


def world(kind, seed):
    return CloudWorld(CLOUD_KINDS[kind], seed, audits=seed % AUDITED == 0)


FENCES = ("fences", "fences under live moves")
"""Kinds that `test_fences_simulated` draws, with evacuations."""


@pytest.mark.parametrize("kind", [each for each in CLOUD_KINDS if each not in FENCES])
def test_every_promise_is_kept_in_every_schedule(kind):
    simulate(lambda seed: world(kind, seed), range(SCHEDULES), kind)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", CLOUD_KINDS)
def test_every_promise_is_kept_in_every_schedule_at_length(kind):
    first = nightly_seed() * 1_000_000
    simulate(lambda seed: world(kind, seed), range(first, first + 2_500), kind)


@pytest.mark.nightly
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_is_put_in_is_found(name):
    # In every run a schedule that is written down finds each: see test_what_goes_wrong.py.
    assert finds(lambda seed: CloudWorld(CLOUD_KINDS["pauses"], seed, FAULTS[name]), range(500))


@pytest.mark.nightly
@pytest.mark.parametrize("name", CELL_FAULTS)
def test_a_fault_that_is_put_into_a_cell_is_found(name):
    kind = CELL_KINDS["pauses"]
    assert finds(lambda seed: CellWorld(kind, seed, CELL_FAULTS[name]), range(500))
