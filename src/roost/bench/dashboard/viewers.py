"""A process that views open pages of the dashboard: their streams of events, and what is fetched again.

It reads a `ViewersPlan` as a line of JSON, prints ``ready`` once each stream has its first event, views until
its standard input ends, and prints `ViewedPages` as JSON.
"""

import asyncio
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import urlencode

import msgspec

from roost.bench.dashboard.event_stream import EVENT, encoded_get, status_of
from roost.dashboard import addresses

TICK: Final = "tick"
_LONGEST_EVENT: Final = 2**22
_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class ViewedPage(msgspec.Struct, frozen=True):
    """A page that a viewer has open.

    ``topics``: of its stream. ``regions``: after an event of the topic `TICK` the page is fetched again for
    each of its regions, at most once in so many seconds, as scripts of the page do.
    """

    path: str
    topics: tuple[str, ...]
    regions: tuple[float, ...] = ()

    @property
    def stream(self) -> str:
        """The address of the stream."""
        return stream_address(self.topics)


class ViewersPlan(msgspec.Struct, frozen=True):
    """The viewers: one for each page. ``headers``: those of a browser that has a session."""

    port: int
    headers: dict[str, str]
    pages: tuple[ViewedPage, ...]


class ViewedPages(msgspec.Struct):
    """The sums of all viewers, in ``seconds`` from their start to their end.

    ``events`` and ``received``: events, and bytes of streams. ``fetched``: regions that were fetched again;
    ``failed``: those whose status was not 200. ``ended``: streams that ended while they were viewed.
    """

    events: int = 0
    received: int = 0
    fetched: int = 0
    failed: int = 0
    ended: int = 0
    seconds: float = 0.0


def stream_address(topics: Sequence[str]) -> str:
    """Return the address of a stream of some topics."""
    return f"{addresses.LIVE}?{urlencode([('topic', each) for each in topics])}"


async def view(plan: ViewersPlan, found: ViewedPages, ready: asyncio.Event, stopped: asyncio.Event) -> None:
    """View all pages until ``stopped``, and count in ``found``.

    ``ready`` is set once each stream has its first event. If one ends before, all end.
    """
    loop = asyncio.get_running_loop()
    since = loop.time()
    viewers = [_Viewer(plan, page, found) for page in plan.pages]
    tasks = [asyncio.create_task(each.run()) for each in viewers]
    begun = asyncio.create_task(_all(each.begun for each in viewers))
    await asyncio.wait([begun, *tasks], return_when=asyncio.FIRST_COMPLETED)
    if begun.done():
        ready.set()
        await stopped.wait()
    found.seconds = loop.time() - since
    found.ended = sum(task.done() for task in tasks)
    for task in (*tasks, begun):
        task.cancel()
    await asyncio.gather(*tasks, begun, return_exceptions=True)


async def _all(events: Iterable[asyncio.Event]) -> None:
    for each in events:
        await each.wait()


class _Viewer:
    """One viewer. ``begun``: the stream has its first event."""

    def __init__(self, plan: ViewersPlan, page: ViewedPage, found: ViewedPages) -> None:
        self.begun = asyncio.Event()
        self._plan = plan
        self._page = page
        self._found = found
        self._old = [asyncio.Event() for _ in page.regions]
        self._fetches = _Fetches(plan)

    async def run(self) -> None:
        """View until the stream ends."""
        pauses = zip(self._old, self._page.regions, strict=True)
        regions = [asyncio.create_task(self._follow(old, pause)) for old, pause in pauses]
        try:
            await self._listen()
        finally:
            for each in regions:
                each.cancel()
            await asyncio.gather(*regions, return_exceptions=True)
            self._fetches.close()

    async def _listen(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._plan.port, limit=_LONGEST_EVENT)
        try:
            writer.write(encoded_get(self._page.stream, self._plan.headers))
            head = await reader.readuntil(_END_OF_HEAD)
            if status_of(head) != 200:
                return
            while True:
                part = await reader.readuntil(b"\n\n")
                self._found.received += len(part)
                event = EVENT.search(part)
                if event is None:
                    continue
                self._found.events += 1
                self.begun.set()
                if event[1] == TICK.encode():
                    for old in self._old:
                        old.set()
        except asyncio.IncompleteReadError:
            return
        finally:
            writer.close()

    async def _follow(self, old: asyncio.Event, pause: float) -> None:
        """Fetch a region whenever it is old."""
        while True:
            await old.wait()
            old.clear()
            status = await self._fetches.get(self._page.path)
            self._found.fetched += 1
            self._found.failed += status != 200
            await asyncio.sleep(pause)


class _Fetches:
    """The connection of a viewer beside the stream."""

    def __init__(self, plan: ViewersPlan) -> None:
        self._port = plan.port
        self._headers = {**plan.headers, "hx-request": "true"}
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._one = asyncio.Lock()

    async def get(self, path: str) -> int:
        """Fetch a page, and return the status; 0 if there is no answer."""
        async with self._one:
            try:
                if self._open is None:
                    self._open = await asyncio.open_connection("127.0.0.1", self._port)
                reader, writer = self._open
                writer.write(encoded_get(path, self._headers))
                head = await reader.readuntil(_END_OF_HEAD)
                length = _LENGTH.search(head)
                await reader.readexactly(0 if length is None else int(length[1]))
            except (OSError, asyncio.IncompleteReadError):
                self.close()
                return 0
            return status_of(head)

    def close(self) -> None:
        """Close the connection."""
        if self._open is not None:
            self._open[1].close()
            self._open = None


async def _main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=ViewersPlan)
    ready, stopped = asyncio.Event(), asyncio.Event()

    async def follow() -> None:
        await ready.wait()
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
        stopped.set()

    following = asyncio.create_task(follow())
    found = ViewedPages()
    await view(plan, found, ready, stopped)
    if not ready.is_set():
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        raise SystemExit("a stream of events did not begin")
    await following
    sys.stdout.write(msgspec.json.encode(found).decode())


if __name__ == "__main__":
    asyncio.run(_main())
