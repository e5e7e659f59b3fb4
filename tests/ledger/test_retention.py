"""Every process that appends removes old commits from time to time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from roost.ledger import Ledger
from roost.ledger.retention import DAY, CommitRetention, keep_trimming
from roost.placement.commands.names import AddResourceClass
from roost.storage import DatabaseUnavailable
from support.ledgers import commits_of, findings_in, opened, run


class Sleeps:
    """A sleep that lasts until the test says so."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._waking = asyncio.Event()
        self._asleep = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        self._asleep.set()
        await self._waking.wait()
        self._waking.clear()

    async def one_round(self) -> None:
        """Let one removal happen, and wait for its end."""
        await self._asleep.wait()
        self._asleep.clear()
        self._waking.set()
        await self._asleep.wait()


async def trimming(
    ledgers: list[Ledger], retention: CommitRetention, now: float, use: Callable[[Sleeps], Awaitable[None]]
) -> None:
    sleeps = [Sleeps() for _ in ledgers]
    tasks = [
        asyncio.create_task(keep_trimming(ledger, retention, lambda: now, each))
        for ledger, each in zip(ledgers, sleeps, strict=True)
    ]
    await asyncio.gather(*(use(each) for each in sleeps))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert all(30 <= asked <= 90 for each in sleeps for asked in each.asked)


async def filled(ledger: Ledger) -> list[int]:
    await run(ledger, *(AddResourceClass(f"CUSTOM_{number}") for number in range(20)))
    return commits_of(ledger.database)


def test_commits_beyond_the_number_go_and_the_log_says_how_many(place) -> None:
    async def use() -> None:
        async with opened(place) as [ledger]:
            kept = await filled(ledger)
            with capture_logs() as logs:
                await trimming([ledger], CommitRetention(commits=5), 0.0, lambda sleeps: sleeps.one_round())
            assert commits_of(ledger.database) == kept[-5:]
            assert [(line["event"], line["commits"]) for line in logs] == [
                ("old commits are removed", len(kept) - 5)
            ]

    asyncio.run(use())
    assert findings_in(place) == []


def test_commits_go_with_their_age_by_the_clock_that_is_given(tmp_path) -> None:
    async def use() -> None:
        async with opened(tmp_path / "api.db") as [ledger]:
            kept = await filled(ledger)
            retention = CommitRetention(days=7)
            await trimming([ledger], retention, 6 * DAY, lambda sleeps: sleeps.one_round())
            assert commits_of(ledger.database) == kept
            await trimming([ledger], retention, 1e12, lambda sleeps: sleeps.one_round())
            assert commits_of(ledger.database) == kept[-1:]

    asyncio.run(use())


def test_several_at_a_time_remove_each_commit_once(place) -> None:
    async def use() -> None:
        async with opened(place, 3) as ledgers:
            kept = await filled(ledgers[0])
            with capture_logs() as logs:
                await trimming(ledgers, CommitRetention(commits=3), 0.0, lambda sleeps: sleeps.one_round())
            assert commits_of(ledgers[0].database) == kept[-3:]
            assert sum(line["commits"] for line in logs) == len(kept) - 3
            await ledgers[1].execute(AddResourceClass("CUSTOM_LATER"))

    asyncio.run(use())
    assert findings_in(place) == []


@pytest.mark.parametrize("failure", [DatabaseUnavailable("gone"), ValueError("a defect")])
def test_after_any_failure_the_next_interval_tries_again(
    tmp_path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    async def use() -> None:
        async with opened(tmp_path / "api.db") as [ledger]:
            kept = await filled(ledger)
            write, failures = ledger.database.write, [failure]

            async def perhaps_write(work):
                if failures:
                    raise failures.pop()
                return await write(work)

            monkeypatch.setattr(ledger.database, "write", perhaps_write)

            async def two_rounds(sleeps: Sleeps) -> None:
                await sleeps.one_round()
                assert commits_of(ledger.database) == kept
                await sleeps.one_round()

            with capture_logs() as logs:
                await trimming([ledger], CommitRetention(commits=5), 0.0, two_rounds)
            assert ["tries again" in line["event"] for line in logs] == [True, False]
            assert commits_of(ledger.database) == kept[-5:]

    asyncio.run(use())


def test_an_interval_of_0_removes_nothing(tmp_path) -> None:
    async def use() -> None:
        async with opened(tmp_path / "api.db") as [ledger]:
            kept = await filled(ledger)
            await keep_trimming(ledger, CommitRetention(commits=1, interval=0.0), lambda: 1e12)
            assert commits_of(ledger.database) == kept

    asyncio.run(use())
