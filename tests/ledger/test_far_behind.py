"""A replica that is far behind follows in bounded pages, between which others go on, or is loaded anew."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from roost.fleet import Fleet
from roost.ledger import delta as module
from roost.ledger.commit_steps import Position
from roost.ledger.delta import DEFAULT_LIMITS, NOWHERE, CommitRow, Delta, Followed, PageLimits, read_delta
from roost.ledger.feed import encode_changes
from roost.ledger.holdings import Holdings
from roost.ledger.replica import Replica
from roost.model.change import AllocationsChanged, GenerationChanged
from support.ledgers import claim, commits_of, findings_in, host, loaded, opened, run, whole


class Rows:
    """A snapshot of so many commits, that counts what is asked of it."""

    def __init__(self, count: int, characters: int = 100, oldest: int = 1) -> None:
        text = encode_changes([GenerationChanged("p" * characters, 0, 1)])
        self.rows = [CommitRow(seq, f"t{seq}", 0.0, text) for seq in range(1, count + 1)]
        self.oldest = oldest
        self.fetched = 0
        self.most_at_once = 0
        self.loads = 0

    def head(self) -> tuple[Position, bool]:
        return Position(self.rows[-1].seq, self.rows[-1].writer), False

    def commits_from(self, seq: int, count: int) -> Sequence[CommitRow]:
        found = self.rows[max(seq, self.oldest) - 1 :][:count]
        self.fetched += len(found)
        self.most_at_once = max(self.most_at_once, len(found))
        return found

    def turn_requests(self) -> Sequence[str]:
        return ()

    def holdings(self, uuids: Sequence[str]) -> Holdings:
        return Holdings({}, {})

    def load(self) -> Any:
        self.loads += 1
        return object()


def test_a_page_ends_after_its_commits():
    rows, at, sizes = Rows(1000), NOWHERE, []
    complete = False
    while not complete:
        page = read_delta(rows, at, (), 10**9)
        at, complete = page.position, page.complete
        sizes.append(len(page.commits))
    assert sizes == [256, 256, 256, 232]
    assert rows.most_at_once <= DEFAULT_LIMITS.commits
    assert rows.fetched < 1100
    assert (at, rows.loads) == (rows.head()[0], 0)


def test_a_page_ends_after_its_characters():
    rows = Rows(1000, characters=10_000)
    page = read_delta(rows, NOWHERE, (), 10**9)
    assert not page.complete
    assert sum(len(commit.text) for commit in page.commits[:-1]) < DEFAULT_LIMITS.characters
    assert len(page.commits) == 27
    # What is fetched and not used is less than one statement's rows.
    assert rows.fetched <= len(page.commits) + rows.most_at_once


def test_a_single_commit_may_be_larger_than_a_page():
    page = read_delta(Rows(3, characters=1000), NOWHERE, (), 10**9, PageLimits(256, 10))
    assert (len(page.commits), page.complete) == (1, False)


def test_what_loading_does_sooner_is_not_even_begun_to_be_followed():
    rows = Rows(1000)
    page = read_delta(rows, Position(1, "t1"), (), 999 * module.SMALL_COMMIT)
    assert (page.fleet, rows.loads) == (None, 0)
    page = read_delta(rows, Position(1, "t1"), (), 998 * module.SMALL_COMMIT)
    assert (page.complete, page.position, rows.loads) == (True, Position(1000, "t1000"), 1)


@pytest.mark.parametrize("since", [Position(5, "other"), Position(2000, "t2000"), Position(20, "t20")])
def test_what_does_not_lead_to_the_head_is_loaded(since):
    rows = Rows(1000, oldest=1 if since.seq == 5 else 100)
    page = read_delta(rows, since, (), 10**9)
    assert (page.complete, len(page.commits), rows.loads) == (True, 0, 1)


def test_commands_go_on_between_the_pages_of_a_reader(place, monkeypatch):
    """And the reader gets an exact version in the end."""

    async def use() -> None:
        async with opened(place, 2) as [writer, reader]:
            await run(writer, *host("p", VCPU=2**30))
            await reader.current()
            for number in range(40):
                await writer.execute(claim(f"c{number}", "p", VCPU=1))
            pages: list[int] = []
            read = module.read_delta

            def small(snapshot: Any, since: Position, uuids: Any, follow: int) -> Any:
                page = read(snapshot, since, uuids, follow, PageLimits(8, 10**6))
                pages.append(len(page.commits))
                return page

            monkeypatch.setattr("roost.ledger.follower.read_delta", small)
            reading = asyncio.create_task(reader.current())
            while not pages:
                await asyncio.sleep(0)
            await reader.execute(claim("meanwhile", "p", VCPU=1))
            fleet = await reading
            assert max(pages) == 8
            assert sum(pages) == 40
            assert whole(fleet) == loaded(writer.database)
            assert len(commits_of(writer.database)) == fleet.version

    asyncio.run(use())
    assert findings_in(place) == []


def test_a_replica_that_does_not_come_nearer_is_loaded_anew():
    replica = Replica(Fleet(), NOWHERE, 1000)
    change = AllocationsChanged("c", None, None, {}, {})
    for seq in range(1, 4):
        commit = Followed(seq, f"t{seq}", 0.0, "x" * 400, [change])
        before = replica.follow_limit
        replica.follow(Delta(Position(seq, f"t{seq}"), [commit], [], None, False, Holdings({}, {}), ()))
        assert replica.follow_limit == before - 400
    assert replica.follow_limit < 0
    replica.follow(Delta(Position(9, "t9"), (), (), Fleet(), True, Holdings({}, {}), ()))
    assert replica.follow_limit == 1000
