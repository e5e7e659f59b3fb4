"""Recorded decisions are made again: the same steps, attempts, selections and refusal, to the last bit."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from roost.ledger.past_fleet import PastFleet
from roost.ledger.tables import commits
from roost.model.spec import Flavor
from roost.records import Retention, RunWithAttempts, spec_of
from roost.records.backend import open_sql_records
from roost.scheduler.replay import DecisionReplay, NotReproducible, Replayed
from roost.scheduler.request.changed import Changes
from roost.state.api_database.node_journal import NodeJournals
from roost.state.api_database.tables import node_journal
from roost.storage import Database
from support.processes import run_roost
from support.redeciding import redecided, worked


def check(made: list[Replayed], impossible: Counter[str], number: int) -> None:
    """All decisions that were made are made again, and all the same."""
    unlike = {each.run.id: (each.differences, each.run) for each in made if each.differences}
    assert unlike == {}
    # No decision was made where placement does not know what is asked for.
    assert all(reason.startswith("no decision was made") for reason in impossible), impossible
    assert len(made) > 0.8 * number
    assert {each.run.refusal is None for each in made} == {True, False}


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a system that has worked, was closed, and has worked again."""
    path = tmp_path_factory.mktemp("workload")
    asyncio.run(worked(path, 3, 2, 20))
    return path


async def recorded(path: Path) -> list[RunWithAttempts]:
    records = await open_sql_records(f"sqlite:///{path / 'records.db'}", Retention(0, 0))
    try:
        return await records.last(1_000)
    finally:
        await records.close()


def test_a_mixed_workload_is_decided_again_also_after_restarts(workload: Path) -> None:
    check(*asyncio.run(redecided(workload)), 40)


def test_another_process_decides_the_same(workload: Path) -> None:
    config = workload / "roost.conf"
    api, records = (f"connection = sqlite:///{workload / name}.db\n" for name in ("api", "records"))
    config.write_text(f"[placement_database]\n{api}[records]\n{records}")
    done = run_roost("replay-decision", "--data-dir", workload, "--last", "12", "--json")
    assert done.returncode == 0, done.stderr
    configured = run_roost("replay-decision", "--config-file", config, "--last", "12", "--json")
    assert configured.stdout == done.stdout, configured.stderr
    answers = json.loads(done.stdout)
    assert len(answers) == 12
    assert all(each["same"] is True or each["impossible"] for each in answers)
    assert any(each["same"] for each in answers)


def test_what_differs_and_what_the_record_does_not_tell_is_said(workload: Path) -> None:
    async def run() -> None:
        runs = await recorded(workload)
        api = Database(f"sqlite:///{workload / 'api.db'}", read_only=True)
        replay = DecisionReplay(await PastFleet.open(api), NodeJournals(api))

        async def again(each: RunWithAttempts, **changed: object) -> Replayed:
            run = msgspec.structs.replace(each.run, **changed)
            return await replay.again(RunWithAttempts(run, each.attempts))

        placed = next(each for each in runs if each.run.destinations and each.run.asked)
        made = await again(placed, refusal="another")
        assert [each.what for each in made.differences] == ["refusal"]
        assert made.differences[0].recorded == '"another"'
        [first, *rest] = placed.run.destinations
        heavier = msgspec.structs.replace(first.selected, weight=first.selected.weight + 1e-15)
        other = msgspec.structs.replace(first, selected=heavier)
        if heavier.weight != first.selected.weight:
            assert (await again(placed, destinations=(other, *rest))).differences
        settings = placed.run.settings
        assert settings is not None
        older = msgspec.structs.replace(settings, roost="0.0.1", digest="older")
        assert (await again(placed, settings=older)).notes[0].startswith("the run was decided by Roost 0.0.1")
        for changed, text in (
            ({"settings": None}, "the record has no options"),
            ({"journal": None}, "names no version of a node journal"),
            ({"journal": "another"}, "node journal another is not kept"),
            ({"node_version": 10_000_000}, "before 10000000: its process was killed"),
            ({"version": None}, "names no version of a ledger"),
            ({"refusal": "max_run_seconds=60 is met: 3 claims"}, "ended by the clock"),
            (
                {"version": (placed.run.version or 0) - 1, "position": 0},
                "does not have the claims of the run",
            ),
            ({"version": 10_000_000}, "cannot be made again: there are commits"),
        ):
            with pytest.raises(NotReproducible, match=text):
                await again(placed, **changed)
        await api.close()

    asyncio.run(run())


def test_a_changed_request_is_decided_on_the_same_state_or_on_the_present_one(workload: Path) -> None:
    async def run() -> None:
        runs = await recorded(workload)
        api = Database(f"sqlite:///{workload / 'api.db'}", read_only=True)
        replay = DecisionReplay(await PastFleet.open(api), NodeJournals(api))
        huge = next(
            each.run
            for each in runs
            if each.run.version is not None and spec_of(each.run).flavor.vcpus == 16 and each.run.refusal
        )
        recorded_one = RunWithAttempts(huge, ())
        assert not (await replay.again(recorded_one)).outcome.destinations
        fits = 0
        for each in runs:
            if each.run.version is not None:
                small = Changes(now=True, flavor=Flavor("small", 1, 128))
                made = await replay.again(each, small)
                assert made.differences == []
                fits += bool(made.outcome.destinations)
        assert fits > len(runs) / 2
        without = (await replay.again(recorded_one, Changes(without=("VCPU",)))).outcome
        claimed = [amounts for each in without.destinations for amounts in each.selected.allocations.values()]
        assert all("VCPU" not in amounts for amounts in claimed)
        for changes in (Changes(without=("ComputeFilter",)), Changes(without=("ComputeFilter",), now=True)):
            steps = [step.name for step in (await replay.again(recorded_one, changes)).outcome.steps]
            assert "ComputeFilter" not in steps
        await api.close()

    asyncio.run(run())


def test_what_is_removed_is_said(tmp_path: Path) -> None:
    async def run() -> None:
        await worked(tmp_path, 4, 1, 8)
        made, _ = await redecided(tmp_path)
        assert made
        api = Database(f"sqlite:///{tmp_path / 'api.db'}")
        newest = sa.select(sa.func.max(commits.c.seq)).scalar_subquery()
        await api.write(
            lambda connection: connection.execute(sa.delete(commits).where(commits.c.seq < newest))
        )
        _, impossible = await redecided(tmp_path)
        assert any("is not kept, so version" in reason for reason in impossible)
        await api.write(lambda connection: connection.execute(sa.delete(node_journal)))
        await api.close()

    asyncio.run(run())


@pytest.mark.nightly
def test_a_thousand_runs_are_decided_again(tmp_path: Path) -> None:
    asyncio.run(worked(tmp_path, 7, 4, 300))
    check(*asyncio.run(redecided(tmp_path)), 1_200)
