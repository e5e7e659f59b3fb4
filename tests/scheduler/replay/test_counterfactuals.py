"""Each counterfactual is a decision that is really made again, as another replay makes it from databases."""

import asyncio
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from roost.ledger import Ledger
from roost.ledger.past_fleet import HistoryMissing, PastFleet, commits_after
from roost.records import Retention, RunWithAttempts
from roost.records.backend import open_sql_records
from roost.scheduler.replay import DecisionReplay, NotReproducible
from roost.scheduler.replay.counterfactuals import Redecided, redecided
from roost.scheduler.replay.histories import RememberedFleet, RememberedNodes
from roost.scheduler.request.changed import Changes
from roost.state.api_database.node_journal import JournalMissing, NodeJournals
from roost.storage import Database
from support.redeciding import worked


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a system that has worked."""
    path = tmp_path_factory.mktemp("workload")
    asyncio.run(worked(path, 11, 1, 24))
    return path


async def remembered(
    api: Database, ledger: Ledger, recorded: RunWithAttempts
) -> tuple[RememberedFleet, RememberedNodes]:
    """The histories of a decision in memory."""
    run, journals = recorded.run, NodeJournals(api)
    if run.version is None or run.journal is None or run.node_version is None or run.asked is None:
        raise NotReproducible("no decision was made")
    fleet = ledger.known()
    commits = await commits_after(api, run.version, fleet.version)
    base = await journals.base(run.journal, min(run.asked.node_version or 0, run.node_version))
    batches = []
    while (batches or [base])[-1].last < run.node_version:
        batches += await journals.after(run.journal, (batches or [base])[-1].batch)
    return RememberedFleet(fleet.fork(), commits), RememberedNodes(run.journal, base, batches)


async def all_made(path: Path) -> list[tuple[RunWithAttempts, Redecided]]:
    """The decisions of a data directory that can be made again, with their counterfactuals."""
    records = await open_sql_records(f"sqlite:///{path / 'records.db'}", Retention(0, 0))
    api = Database(f"sqlite:///{path / 'api.db'}")
    ledger = await Ledger.open(api)
    found = []
    try:
        for each in await records.last(1_000):
            try:
                fleet, nodes = await remembered(api, ledger, each)
                found.append((each, redecided(fleet, nodes, each, lambda: False)))
            except NotReproducible:
                continue
        return found
    finally:
        await ledger.close()
        await api.close()
        await records.close()


def test_counterfactuals_are_what_a_replay_from_the_databases_decides(workload: Path) -> None:
    async def check() -> None:
        found = await all_made(workload)
        kinds = Counter(each.kind for _, made in found for each in made.counterfactuals)
        assert len(found) > 15 and {"constraint", "filter", "weigher"} <= set(kinds), kinds
        api = Database(f"sqlite:///{workload / 'api.db'}", read_only=True)
        try:
            replay = DecisionReplay(await PastFleet.open(api), NodeJournals(api))
            differing = 0
            for recorded, made in sorted(found, key=lambda each: each[0].run.version or 0):
                assert made.same and made.complete
                as_it_was = [each.selected.node for each in recorded.run.destinations]
                for each in made.counterfactuals:
                    again = (await replay.again(recorded, Changes(each.without))).outcome
                    assert [host.node for host in each.hosts] == [
                        one.selected.node for one in again.destinations
                    ], (recorded.run, each)
                    assert each.refusal == again.refusal
                    assert each.same == ([host.node for host in each.hosts] == as_it_was)
                    differing += not each.same
                    assert each.number_came >= each.left - made.left >= 0 or each.kind == "weigher"
                    if each.kind == "weigher":
                        assert (each.left, each.number_came) == (made.left, 0)
            assert differing
        finally:
            await api.close()

    asyncio.run(check())


def test_the_time_ends_them(workload: Path) -> None:
    async def check() -> None:
        records = await open_sql_records(f"sqlite:///{workload / 'records.db'}", Retention(0, 0))
        api = Database(f"sqlite:///{workload / 'api.db'}")
        ledger = await Ledger.open(api)
        placed = next(each for each in await records.last(1_000) if each.run.destinations)
        fleet, nodes = await remembered(api, ledger, placed)
        over = iter([False, True])
        made = redecided(fleet, nodes, placed, lambda: next(over))
        assert len(made.counterfactuals) == 1 and not made.complete
        told = msgspec.structs.replace(placed.run, told=(object(),))
        with pytest.raises(NotReproducible, match="over HTTP"):
            redecided(fleet, nodes, RunWithAttempts(told, ()), lambda: False)
        await ledger.close()
        await api.close()
        await records.close()

    asyncio.run(check())


def test_histories_in_memory_say_what_they_lack(workload: Path) -> None:
    async def check() -> None:
        api = Database(f"sqlite:///{workload / 'api.db'}")
        ledger = await Ledger.open(api)
        fleet = ledger.known()
        with pytest.raises(HistoryMissing, match="there are commits"):
            await commits_after(api, fleet.version - 1, fleet.version + 5)
        past = RememberedFleet(fleet.fork(), await commits_after(api, fleet.version - 3, fleet.version))
        assert (await past.at(fleet.version - 3)).version == fleet.version - 3
        assert (await past.at(fleet.version)).version == past.version == fleet.version
        assert await past.next_changes(fleet.version) is None
        with pytest.raises(HistoryMissing, match="is not kept"):
            await past.at(fleet.version - 4)
        journals = NodeJournals(api)
        newest = await journals.newest()
        assert newest is not None
        nodes = RememberedNodes(newest[0], await journals.base(*newest), [])
        with pytest.raises(JournalMissing):
            await nodes.base("another", newest[1])
        await ledger.close()
        await api.close()

    asyncio.run(check())
