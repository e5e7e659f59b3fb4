"""A cell's conductors and hosts in drawn schedules: crashes, stops, cuts, outages, lost and late messages."""

import pytest

from support.seeds import nightly_seed
from support.simulation.cell_world import CellWorld
from support.simulation.kinds import CELL_KINDS
from support.simulation.seeds import simulate

SCHEDULES = 40
"""Of each kind, in every run."""


@pytest.mark.parametrize("kind", CELL_KINDS)
def test_every_promise_is_kept_in_every_schedule(kind):
    simulate(lambda seed: CellWorld(CELL_KINDS[kind], seed), range(SCHEDULES), kind)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", CELL_KINDS)
def test_every_promise_is_kept_in_every_schedule_at_length(kind):
    first = nightly_seed() * 1_000_000
    simulate(lambda seed: CellWorld(CELL_KINDS[kind], seed), range(first, first + 4_000), kind)


def test_a_seed_gives_the_same_schedule_again_with_and_without_kept_results_and_plain_statements():
    traces = []
    for saves in (True, True, False):
        world = CellWorld(CELL_KINDS["everything"], 3)
        for database in world.network.databases.values():
            database.repeats = database.plain = saves
        world.run()
        traces.append([(note.at, note.who, repr(note.what)) for note in world.network.trace])
    assert traces[0] == traces[1]
    assert traces[0] == traces[2]
