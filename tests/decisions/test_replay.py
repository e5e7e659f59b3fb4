"""Recorded decisions are made again: the same steps, attempts, selections and refusal, to the last bit."""

import asyncio
from pathlib import Path

import pytest

from support.redeciding import redecided, worked


async def check(path: Path, lives: int, number: int) -> None:
    await worked(path, 3, lives, number)
    made, impossible = await redecided(path)
    unlike = {each.run.id: (each.differences, each.run) for each in made if each.differences}
    assert unlike == {}
    # No decision was made where placement does not know what is asked for.
    assert all(reason.startswith("no decision was made") for reason in impossible), impossible
    assert len(made) > 0.8 * lives * number
    assert {each.run.refusal is None for each in made} == {True, False}


def test_a_mixed_workload_is_decided_again_also_after_restarts(tmp_path: Path) -> None:
    asyncio.run(check(tmp_path, 2, 25))


@pytest.mark.nightly
def test_a_thousand_runs_are_decided_again(tmp_path: Path) -> None:
    asyncio.run(check(tmp_path, 4, 300))
