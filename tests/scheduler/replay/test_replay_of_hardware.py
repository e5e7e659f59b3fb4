"""Decisions on NUMA and PCI nodes, of two schedulers on one ledger, are made again: to the last bit."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from roost.scheduler.replay import Replayed
from roost.scheduler.request.demand.numa_groups import NumaModel
from scheduler.replay.hardware_workload import BEGIN, worked_on_hardware
from support.redeciding import redecided
from support.seeds import nightly_seed

MODELS = pytest.mark.parametrize("numa_model", ["objects", "trees", "both"])


async def worked_and_redecided(
    path: Path, name: str, count: int, numa_model: NumaModel, *, wire: bool = False
) -> tuple[Counter[str], list[Replayed]]:
    """What happened, and the decisions made again. All of them can be, and are the same."""
    said = await worked_on_hardware(path, name, count, numa_model, wire=wire)
    made, impossible = await redecided(path)
    assert impossible == {}
    assert {each.run.id: (each.differences, each.run) for each in made if each.differences} == {}
    assert len(made) == 2 * (BEGIN + count)
    assert len({each.run.journal for each in made}) == 2
    assert all(said[each] for each in ("answered", "refused", "freed")), said
    placed = [chosen.selected for each in made for chosen in each.outcome.destinations]
    cells = [each.assignment.cells for each in placed if each.assignment is not None]
    assert any(cells) == (numa_model != "trees")
    assert any(each.assignment is not None and each.assignment.devices for each in placed)
    assert any("_NUMA0" in each.mappings for each in placed) == (numa_model != "objects")
    return said, made


@MODELS
def test_decisions_of_two_schedulers_are_made_again(tmp_path: Path, numa_model: NumaModel) -> None:
    asyncio.run(worked_and_redecided(tmp_path, "short", 6, numa_model))


def test_decisions_over_http_are_made_again(tmp_path: Path) -> None:
    _, made = asyncio.run(worked_and_redecided(tmp_path, "wire", 6, "both", wire=True))
    assert all(each.run.version is None and each.run.told for each in made)
    placed = next(each for each in made if each.outcome.destinations)
    assert placed.run.told[-1].call == "write_allocations"


@pytest.mark.nightly
@MODELS
@pytest.mark.parametrize("wire", [False, True])
def test_hundreds_of_decisions_are_made_again(tmp_path: Path, numa_model: NumaModel, wire: bool) -> None:
    name = str(nightly_seed())
    said, made = asyncio.run(worked_and_redecided(tmp_path, name, 200, numa_model, wire=wire))
    assert min(said[each] for each in ("answered", "refused", "freed", "moved", "handed")) > 0, said
    assert any(each.run.position or any(told.position for told in each.run.told) for each in made)
