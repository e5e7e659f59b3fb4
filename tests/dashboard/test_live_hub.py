"""Live pages: what viewers are told of commits, hosts and maps, with the rounds in the test's hands."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from roost.dashboard.live import live_operations
from roost.dashboard.live.map_changes import RELOAD
from roost.dashboard.live.viewer import MOST_BYTES, MOST_WAITING, LiveViewer
from roost.placement.commands.allocations import WriteAllocations
from roost.storage import StorageError
from support.clouds import Cloud, flat, holding, report, uuid_of
from support.fleet_pages import FleetPages, fleet_pages

USED = "levels?by=used&class=VCPU"


def events(content: bytes) -> list[tuple[str, Any]]:
    """The events of a stream, each with its topic and data."""
    found = []
    for block in content.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "event" in lines:
            data = lines["data"]
            found.append((lines["event"], json.loads(data) if data.startswith("{") else data))
    return found


async def claim(pages: FleetPages, host: int, amount: int, consumer: int, of: str = "VCPU") -> None:
    assert pages.service.ledger is not None
    write = holding(uuid_of(consumer), {uuid_of(host): {of: amount}})
    await pages.service.ledger.execute(WriteAllocations((write,)))


async def taken(viewer: LiveViewer) -> list[tuple[str, Any]]:
    return events(await viewer.take(0.0))


async def shown(pages: FleetPages, topic: str = USED) -> list[int]:
    query = topic.partition("?")[2]
    return list((await pages.get(f"/ui/map/levels?{query}")).content)


def test_changes_lead_from_the_bytes_at_the_begin_to_the_present_ones(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, flat(20)) as pages:
            hub = pages.service.live
            viewer = await hub.join(["tick", "layout", USED])
            mine = await shown(pages)
            first = dict(await taken(viewer))
            layout = first["layout"]
            assert layout == (await pages.now()).layout.version and first["tick"] == hub.mark
            await hub.round()
            assert await taken(viewer) == []  # nothing has changed
            for number in range(5):
                await claim(pages, 3, 1, 0x500 + number)
                await claim(pages, 4 + number, 8, 0x600 + number)
                await hub.round()
                told = dict(await taken(viewer))
                assert told["tick"] == hub.mark and told[USED]["layout"] == layout
                assert told[USED]["commit"] == (await pages.now()).version
                assert len(told[USED]["changes"]) == 2
                for host, level in told[USED]["changes"]:
                    mine[host] = level
                assert mine == await shown(pages)
            # A commit that changes no byte is a tick alone.
            await claim(pages, 4, 8, 0x700, "MEMORY_MB")
            await hub.round()
            assert [topic for topic, _ in await taken(viewer)] == ["tick"]

    asyncio.run(main())


def test_a_host_that_goes_down_changes_its_byte_without_a_commit(tmp_path: Path) -> None:
    async def main() -> None:
        cloud = flat(3)
        table = cloud.table()
        async with fleet_pages(tmp_path, cloud, table=table) as pages:
            hub = pages.service.live
            viewer = await hub.join([USED])
            before = (await pages.get("/ui/map/levels?by=used&class=VCPU")).headers["x-roost-commit"]
            await taken(viewer)
            table.set_up("host1", False)
            await hub.round()
            [(topic, data)] = await taken(viewer)
            assert topic == USED and data["changes"] == [[1, 33]]
            # A map takes only what is newer than what it shows.
            assert data["commit"] > float(before) and int(data["commit"]) == int(before)
            await claim(pages, 0, 8, 0x500)
            await hub.round()
            [(_, data)] = await taken(viewer)
            assert data["commit"] == int(before) + 1

    asyncio.run(main())


def test_a_new_host_is_a_new_layout_and_no_changes(tmp_path: Path) -> None:
    async def main() -> None:
        cloud = flat(3)
        table = cloud.table()
        async with fleet_pages(tmp_path, cloud, table=table) as pages:
            viewer = await pages.service.live.join(["layout", USED])
            [(_, before)] = await taken(viewer)
            table.update([report("new", uuid_of(99))])
            await pages.service.live.round()
            [(topic, layout)] = await taken(viewer)
            assert topic == "layout" and layout != before
            await claim(pages, 0, 8, 0x500)
            await pages.service.live.round()
            [(topic, data)] = await taken(viewer)
            assert topic == USED and data["layout"] == layout

    asyncio.run(main())


def test_many_changes_at_once_and_a_new_scale_are_a_reload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.dashboard.live.map_changes.FEW_CHANGES", 2)

    async def main() -> None:
        async with fleet_pages(tmp_path, flat(20)) as pages:
            hub = pages.service.live
            free = "levels?by=free&class=VCPU"
            viewer = await hub.join([USED, free])
            for host in range(20):
                await claim(pages, host, 5, 0x500 + host)
            await hub.round()
            assert await taken(viewer) == [(USED, json.loads(RELOAD)), (free, json.loads(RELOAD))]
            await claim(pages, 1, 1, 0x600)
            await hub.round()
            assert sorted(topic for topic, _ in await taken(viewer)) == sorted([USED, free])

    asyncio.run(main())


def test_an_event_is_encoded_once_for_all_viewers(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, flat(3)) as pages:
            hub = pages.service.live
            viewers = [await hub.join(["tick", USED]) for _ in range(50)]
            for each in viewers:
                await each.take(0.0)
            await claim(pages, 1, 8, 0x500)
            await hub.round()
            queues = [list(each._waiting) for each in viewers]
            assert len(queues[0]) == 2
            for each in queues:
                assert [*map(id, each)] == [*map(id, queues[0])]

    asyncio.run(main())


def test_a_slow_viewer_gets_a_reload_and_not_a_longer_queue(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, flat(3)) as pages:
            hub = pages.service.live
            slow, quick = await hub.join(["tick", "layout", USED]), await hub.join(["tick", USED])
            for number in range(3 * MOST_WAITING):
                hub.announce("tick", f"{number}")
                assert slow.waiting <= MOST_WAITING
                await quick.take(0.0)
            await claim(pages, 1, 8, 0x500)
            await hub.round()
            found = await taken(slow)
            assert (USED, json.loads(RELOAD)) in found and ("tick", hub.mark) in found
            assert not slow.lost
            assert (USED, json.loads(RELOAD)) not in await taken(quick)
            slow.put(b"x" * (MOST_BYTES + 1))
            assert slow.lost and not slow.waiting

    asyncio.run(main())


def test_a_viewer_who_leaves_is_forgotten_and_so_is_the_map(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, flat(3)) as pages:
            hub = pages.service.live
            viewer = await hub.join([USED])
            hub.leave(viewer)
            await hub.round()
            assert len(hub) == 0 and not hub._maps
            await hub.join(["tick"])  # a stream that never begins: nothing holds its viewer
            assert len(hub) == 0

    asyncio.run(main())


def test_rounds_are_done_only_for_viewers_and_survive_a_ledger_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, flat(3)) as pages:
            slept = asyncio.Semaphore(0)
            turns = 0

            async def sleep(seconds: float) -> None:
                nonlocal turns
                turns += 1
                await slept.acquire()

            hub = pages.service.live
            hub._sleep = sleep
            running = asyncio.create_task(hub.run())
            await asyncio.sleep(0)
            assert turns == 0
            viewer = await hub.join(["tick"])
            await viewer.take(0.0)

            async def fail(**_: object) -> Any:
                raise StorageError("away")

            with monkeypatch.context() as patch:
                patch.setattr(pages.service.hosts, "now", fail)
                slept.release()
                await viewer.take(0.01)
            await claim(pages, 1, 8, 0x500)
            slept.release()
            assert events(await viewer.take(30.0)) == [("tick", hub.mark)]
            assert not running.done()
            running.cancel()

    asyncio.run(main())


@asynccontextmanager
async def streaming(pages: FleetPages, path: str, **headers: str) -> AsyncIterator[tuple[Any, Any]]:
    """A request over ASGI whose response does not end. Yields its status and a function that reads."""
    sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    gone = asyncio.Event()
    begun = False

    async def receive() -> dict[str, Any]:
        nonlocal begun
        if not begun:
            begun = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    found, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": found,
        "raw_path": found.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [
            (b"host", b"dashboard"),
            (b"cookie", pages.cookie.encode()),
            *((name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()),
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    task = asyncio.create_task(pages.app(scope, receive, sent.put))  # type: ignore[arg-type]
    start = await sent.get()

    async def read() -> bytes | None:
        message = await sent.get()
        return message["body"] if message.get("more_body") else None

    try:
        yield start, read
    finally:
        gone.set()
        await asyncio.wait({task}, timeout=5)
        task.cancel()


def test_the_stream_has_events_and_ends_with_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, flat(3)) as pages:
            now = 0.0
            pages.service.live.monotonic = lambda: now
            address = f"/ui/live?topic=tick&topic={quote(USED)}"
            async with streaming(pages, address) as (start, read):
                assert start["status"] == 200
                heads = dict(start["headers"])
                assert heads[b"content-type"].startswith(b"text/event-stream")
                assert heads[b"cache-control"] == b"no-store" and b"content-encoding" not in heads
                assert await read() == b"retry: 1000\n\n"
                assert [topic for topic, _ in events(await read() or b"")] == ["tick"]
                await claim(pages, 1, 8, 0x500)
                await pages.service.live.round()
                assert [topic for topic, _ in events(await read() or b"")] == ["tick", USED]
                pages.log_out()
                now += live_operations.KEEP_SECONDS
                pages.service.live.announce("tick", "again")
                assert await read() is None  # the stream has ended
            assert len(pages.service.live) == 0

    asyncio.run(main())


def test_the_stream_is_refused_to_nobody_to_users_of_projects_and_when_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, flat(1)) as pages:
            for token, status in (("", 401), ("mia", 403)):
                answer = await pages.client.get(
                    "/ui/live?topic=tick", headers={"x-auth-token": token, "accept": "application/json"}
                )
                assert answer.status_code == status
            monkeypatch.setattr(live_operations, "MOST_VIEWERS", 1)
            viewer = await pages.service.live.join(["tick"])
            answer = await pages.get("/ui/live?topic=tick", accept="application/json")
            assert answer.status_code == 429 and len(pages.service.live) == 1
            pages.service.live.leave(viewer)
            for query in ("", "topic=" + "x" * 3000, "&".join(["topic=t"] * 30), "other=1"):
                answer = await pages.get(f"/ui/live?{query}", accept="application/json")
                assert answer.status_code == 400

    asyncio.run(main())


def test_streams_end_when_the_process_does(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            fleet_pages(tmp_path, flat(1)) as pages,
            streaming(pages, "/ui/live?topic=tick") as (_, read),
        ):
            await read(), await read()
            pages.service.live.close()
            assert await read() is None

    asyncio.run(main())


def test_topics_of_a_map_are_only_what_they_select(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, Cloud([], [])) as pages:
            for topic in (
                "levels?by=what",
                "levels?nothing=1",
                "other",
                "levels?by=used&class=a\nevent: tick",
            ):
                viewer = await pages.service.live.join([topic, "tick"])
                await pages.service.live.round()
                assert [name for name, _ in await taken(viewer)] == ["tick"]

    asyncio.run(main())
