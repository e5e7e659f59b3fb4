"""The clients of the dashboard's benchmark: they load, hear and fetch what a browser does, and no more."""

import asyncio
from collections import Counter

import pytest

from roost.bench.dashboard.event_stream import EVENT, StreamEvent
from roost.bench.dashboard.first_paint import first_paint, imported_files, needed_files
from roost.bench.dashboard.page_views import commit_of
from roost.bench.dashboard.timed_connection import Exchange
from roost.bench.dashboard.viewers import TICK, ViewedPage, ViewedPages, ViewersPlan, view
from roost.dashboard.assets import asset, asset_files
from roost.dashboard.html.shell import Viewing, shell

PAGE = shell(Viewing("someone", True, None, "/ui/map", nonce="n"), "Map", "", files=("fleet_map.js",))


class Answers:
    """A connection on which each file is an asset, and everything else a page; it counts the requests."""

    def __init__(self, page: str) -> None:
        self.asked: Counter[str] = Counter()
        self._page = page

    def get(self, path: str, **headers: str) -> Exchange:
        self.asked[path] += 1
        name = path.partition("?")[0].removeprefix("/ui/assets/")
        file = asset_files().get(name)
        body = self._page.encode() if file is None else file.content
        return Exchange(200, {}, body, 1_000, 0.001)


def test_a_first_paint_has_each_file_once_with_those_that_scripts_import():
    answers = Answers(PAGE)
    found = first_paint(answers, "/ui/map")  # type: ignore[arg-type]
    assert set(answers.asked.values()) == {1}
    for name in (
        "roost.css",
        "icons.svg",
        "vendor/htmx.min.js",
        "fleet_map.js",
        "map_view.js",
        "live_stream.js",
    ):
        assert answers.asked[asset(name)] == 1, name
    assert asset("live_worker.js") not in answers.asked
    assert found.requests == len(answers.asked)
    assert (found.wire, found.seconds) == (1_000 * found.requests, pytest.approx(0.001 * found.requests))


def test_a_first_paint_of_the_map_has_its_data():
    page = '<section data-layout-url="/ui/map/layout" data-levels-url="/ui/map/levels?at=3&amp;by=used">'
    answers = Answers(page)
    assert first_paint(answers, "/ui/map").requests == 3  # type: ignore[arg-type]
    assert [*answers.asked] == ["/ui/map", "/ui/map/layout", "/ui/map/levels?at=3&by=used"]


def test_every_script_of_the_package_is_found_by_its_import():
    scripts = {name for name in asset_files() if name.endswith(".js") and "/" not in name}
    imported = {
        address for name in scripts for address in imported_files(asset_files()[name].content.decode())
    }
    assert imported <= {asset(name) for name in scripts}
    assert asset("map_layout.js") in imported
    assert asset("theme.js") in needed_files(PAGE)


def test_events_are_found_between_the_chunks_of_a_stream():
    part = b"e\r\nretry: 1000\n\n\r\n1c\r\nevent: tick\ndata: 7.0.abc\n\n"
    found = EVENT.search(part)
    assert found is not None and found.groups() == (b"tick", b"7.0.abc")


def test_events_tell_their_commit():
    assert commit_of(StreamEvent(TICK, "12.3.abc", 0.0)) == 12
    changes = '{"layout":"a","commit":12.001,"changes":[[1,2]]}'
    assert commit_of(StreamEvent("levels?by=used", changes, 0.0)) == 12.001


class Dashboard:
    """A server of streams and of pages. It counts the requests by path.

    A stream has ``ticks`` events: one half at once, the other half after ``fetches`` pages were fetched.
    """

    def __init__(self, ticks: int, fetches: int = 0) -> None:
        self.asked: Counter[str] = Counter()
        self._ticks = ticks
        self._fetches = fetches
        self._fetched = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ")[1].decode()
                self.asked[path] += 1
                if path.startswith("/ui/live"):
                    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                    for number in range(self._ticks):
                        if number == self._ticks // 2 and self._fetches:
                            await writer.drain()
                            await self._fetched.wait()
                        event = f"event: tick\ndata: {number}.0.a\n\n".encode()
                        writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
                else:
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    if self.asked[path] == self._fetches:
                        self._fetched.set()
                await writer.drain()
        except asyncio.IncompleteReadError:
            writer.close()


def viewed(dashboard: Dashboard, pages: tuple[ViewedPage, ...], events: int) -> ViewedPages:
    """View pages until so many events and the first fetch of each region have come."""
    found = ViewedPages()
    regions = sum(len(each.regions) for each in pages)

    async def main() -> None:
        async with await asyncio.start_server(dashboard.serve, "127.0.0.1") as server:
            plan = ViewersPlan(server.sockets[0].getsockname()[1], {"cookie": "a=b"}, pages)
            ready, stopped = asyncio.Event(), asyncio.Event()
            task = asyncio.create_task(view(plan, found, ready, stopped))
            await ready.wait()
            while found.events < events or found.fetched < regions:
                await asyncio.sleep(0.001)
            stopped.set()
            await task

    asyncio.run(main())
    return found


def test_a_viewer_fetches_a_region_once_in_its_pause_however_many_events_come():
    dashboard = Dashboard(ticks=40, fetches=4)
    page = ViewedPage("/ui", (TICK,), regions=(60.0, 60.0))
    found = viewed(dashboard, (page, page), 80)
    assert (found.events, found.fetched, found.failed, found.ended) == (80, 4, 0, 0)
    assert dashboard.asked == {"/ui/live?topic=tick": 2, "/ui": 4}


def test_a_viewer_without_regions_only_listens():
    dashboard = Dashboard(ticks=3)
    found = viewed(dashboard, (ViewedPage("/ui/map", (TICK, "levels?by=used")),), 3)
    assert (found.events, found.fetched) == (3, 0)
    assert dashboard.asked == {"/ui/live?topic=tick&topic=levels%3Fby%3Dused": 1}
