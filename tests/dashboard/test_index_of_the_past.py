"""The index of the past follows the ledger, is made again from it, and is bounded."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from roost.dashboard.past.index_keeper import IndexKeeper, KeeperPace
from roost.dashboard.past.past_moments import PastMissing
from roost.dashboard.past.past_reads import PastReads
from roost.ledger import Ledger
from roost.ledger.tables import commits
from roost.placement.commands.allocations import DeleteAllocations
from support.databases import Place
from support.ledgers import claim, host, opened, run

SIZE = 10
"""Commits of a file."""


@asynccontextmanager
async def keeping(ledger: Ledger, folder: Path, most_bytes: int = 2**30) -> AsyncIterator[PastReads]:
    """The past of a ledger, with an index that is whole."""
    keeper = IndexKeeper(ledger, folder, most_bytes, SIZE, KeeperPace(follow=0.0), lambda _: asyncio.sleep(0))
    task = asyncio.create_task(keeper.run())
    try:
        while keeper.filling:
            await asyncio.sleep(0)
        yield PastReads(ledger, keeper)
    finally:
        task.cancel()
        await asyncio.wait([task])
        await keeper.close()


async def held_at(past: PastReads, version: int) -> set[str]:
    """The consumers that hold something of host a as of a version."""
    found = await past.host("a", version)
    return set() if found is None else {each.consumer.uuid for each in found.holders}


async def make_history(ledger: Ledger, first: int = 0, count: int = 30) -> dict[int, set[str]]:
    """Claim and free on host a; returns the consumers by version."""
    held: dict[int, set[str]] = {}
    for number in range(first, first + count):
        await run(ledger, claim(f"c{number}", "a", VCPU=1))
        if number % 3 == 2:
            await run(ledger, DeleteAllocations(f"c{number - 1}"))
        fleet = await ledger.current()
        held[fleet.version] = set(consumers_of(ledger))
    return held


def consumers_of(ledger: Ledger) -> list[str]:
    query = sa.text("SELECT uuid FROM consumers")
    return ledger.database.read_now(lambda connection: list(connection.execute(query).scalars()))


async def check(past: PastReads, held: dict[int, set[str]]) -> None:
    for version, consumers in held.items():
        assert await held_at(past, version) == consumers, version


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "past"


def files_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.past"))


def test_it_is_filled_from_the_ledger_and_follows_it(tmp_path: Path, folder: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "roost.db") as [ledger]:
            await run(ledger, *host("a", VCPU=1000))
            held = await make_history(ledger)
            async with keeping(ledger, folder) as past:
                await check(past, held)
                held |= await make_history(ledger, 30)
                await check(past, held)
                newest = (await ledger.current()).version
                while len(files_of(folder)) < newest // SIZE:
                    await asyncio.sleep(0)
            held |= await make_history(ledger, 60)
            async with keeping(ledger, folder) as past:
                await check(past, held)

    asyncio.run(work())


def test_on_each_kind_of_database(place: Place, folder: Path) -> None:
    async def work() -> None:
        async with opened(place) as [ledger]:
            await run(ledger, *host("a", VCPU=1000))
            await run(ledger, *host("b", parent="a", VCPU=10))
            held = await make_history(ledger, count=12)
            async with keeping(ledger, folder) as past:
                await check(past, held)
                newest = (await ledger.current()).version
                moment = await past.moment(f"{newest - 1}")
                assert moment.stamp is not None
                assert (await past.moment(f"{moment.stamp + 1e-6:.6f}")).version >= newest - 1
                assert (await past.consumer("c0", newest)).holder is not None
                found = await past.host("a", newest)
                assert found is not None and [each.uuid for each in found.providers] == ["a", "b"]
                assert (await past.columns(newest - 1)).trees("VCPU").capacity.sum() == 1010

    asyncio.run(work())


@pytest.mark.parametrize("damage", ["deleted", "emptied", "cut", "changed", "foreign", "folder", "left"])
def test_damaged_files_are_made_again(tmp_path: Path, folder: Path, damage: str) -> None:
    async def work() -> None:
        async with opened(tmp_path / "roost.db") as [ledger]:
            await run(ledger, *host("a", VCPU=1000))
            held = await make_history(ledger)
            async with keeping(ledger, folder):
                pass
            _damage(folder, damage)
            async with keeping(ledger, folder) as past:
                await check(past, held)
                assert all(each.stat().st_size > 100 for each in files_of(folder))
                assert not list(folder.glob(".*"))

    asyncio.run(work())


def _damage(folder: Path, damage: str) -> None:
    [first, second, *_] = files_of(folder)
    content = first.read_bytes()
    match damage:
        case "deleted":
            first.unlink()
        case "emptied":
            first.write_bytes(b"")
        case "cut":
            first.write_bytes(content[: len(content) // 2])
        case "changed":
            first.write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
        case "foreign":
            first.write_bytes(second.read_bytes())
        case "folder":
            for each in files_of(folder):
                each.unlink()
            folder.rmdir()
        case "left":
            (folder / f".{first.name}.new").write_bytes(content[:50])
            first.unlink()


def test_the_folder_may_be_deleted_while_it_is_used(tmp_path: Path, folder: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "roost.db") as [ledger]:
            await run(ledger, *host("a", VCPU=1000))
            held = await make_history(ledger)
            async with keeping(ledger, folder) as past:
                _damage(folder, "folder")
                held |= await make_history(ledger, 30)
                await check(past, held)

    asyncio.run(work())


def test_it_is_of_one_database(tmp_path: Path, folder: Path) -> None:
    async def work() -> None:
        for name in ("one", "other"):
            async with opened(tmp_path / f"{name}.db") as [ledger]:
                await run(ledger, *host("a", VCPU=1000))
                held = await make_history(ledger, count=20 if name == "one" else 25)
                async with keeping(ledger, folder) as past:
                    await check(past, held)

    asyncio.run(work())


def test_a_database_that_was_taken_back_keeps_no_later_files(tmp_path: Path, folder: Path) -> None:
    file = tmp_path / "roost.db"

    async def history(first: int, count: int) -> dict[int, set[str]]:
        async with opened(file) as [ledger]:
            if not first:
                await run(ledger, *host("a", VCPU=1000))
            held = await make_history(ledger, first, count)
            async with keeping(ledger, folder) as past:
                await check(past, held)
        return held

    early = asyncio.run(history(0, 10))
    content = file.read_bytes()
    asyncio.run(history(10, 20))
    file.write_bytes(content)

    async def again() -> None:
        held = early | await history(100, 20)
        async with opened(file) as [ledger], keeping(ledger, folder) as past:
            await check(past, held)

    asyncio.run(again())


def test_it_is_bounded(tmp_path: Path, folder: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "roost.db") as [ledger]:
            await run(ledger, *host("a", VCPU=1000))
            held = await make_history(ledger, count=60)
            async with keeping(ledger, folder):
                size = max(each.stat().st_size for each in files_of(folder))
            most = 3 * size
            async with keeping(ledger, folder, most) as past:
                assert 0 < sum(each.stat().st_size for each in files_of(folder)) <= most
                await check(past, dict([*held.items()][-3:]))
                with pytest.raises(
                    PastMissing, match=r"version \d+ cannot be shown: .*begins at commit \d+, of"
                ):
                    await past.host("a", min(held))

    asyncio.run(work())


def test_trimmed_commits_are_told(tmp_path: Path, folder: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "roost.db") as [ledger]:
            await run(ledger, *host("a", VCPU=1000))
            held = await make_history(ledger)
            first = [*held][10]
            trimmed = sa.delete(commits).where(commits.c.seq <= first)
            async with keeping(ledger, folder) as past:
                await ledger.database.write(lambda connection: connection.execute(trimmed))
                assert await held_at(past, first) == held[first]
                with pytest.raises(
                    PastMissing, match=rf"version {first - 1} is not kept: the commits {first + 1} to"
                ):
                    await past.host("a", first - 1)
            async with keeping(ledger, folder) as past:
                await check(past, {version: names for version, names in held.items() if version >= first})

    asyncio.run(work())


def test_without_an_index_only_the_present_is_shown(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "roost.db") as [ledger]:
            await run(ledger, *host("a", VCPU=10), claim("c", "a", VCPU=1))
            past = PastReads(ledger, None)
            newest = (await ledger.current()).version
            assert await held_at(past, newest) == {"c"}
            with pytest.raises(PastMissing, match=r"set \[dashboard\] directory"):
                await past.host("a", newest - 1)
        with pytest.raises(PastMissing, match="placement is another service"):
            await PastReads(None, None).host("a", 1)

    asyncio.run(work())


KEEPER = """
import asyncio, sys
from pathlib import Path
from roost.dashboard.past.index_keeper import IndexKeeper, KeeperPace
from roost.ledger import Ledger
from roost.storage import Database

async def run():
    ledger = await Ledger.open(Database(f"sqlite:///{sys.argv[1]}"))
    keeper = IndexKeeper(ledger, Path(sys.argv[2]), 2**30, 10, KeeperPace(share=0.9))
    await keeper.run()

asyncio.run(run())
"""
"""A process that keeps an index, and writes a file for each ten commits."""


def test_a_process_that_is_killed_leaves_an_index_that_is_used(tmp_path: Path, folder: Path) -> None:
    file = tmp_path / "roost.db"

    async def history(first: int) -> dict[int, set[str]]:
        async with opened(file) as [ledger]:
            if not first:
                await run(ledger, *host("a", VCPU=1000))
            return await make_history(ledger, first, 40)

    held: dict[int, set[str]] = {}
    for number in range(3):
        held |= asyncio.run(history(40 * number))
        before = len(files_of(folder))
        keeper = subprocess.Popen([sys.executable, "-c", KEEPER, str(file), str(folder)])
        # Killed while it writes its files, after another number of them each time.
        while len(files_of(folder)) <= before + number and keeper.poll() is None:
            time.sleep(0.001)
        keeper.kill()
        keeper.wait()

    async def again() -> None:
        async with opened(file) as [ledger], keeping(ledger, folder) as past:
            await check(past, held)
            assert not list(folder.glob(".*"))

    asyncio.run(again())
