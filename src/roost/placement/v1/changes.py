"""``/v1/changes``: every commit in its order, as JSON or as a stream of events.

A stream reads the commits for itself, some at a time, and only as fast as its client takes them: one that
is slow is behind by itself, and nothing is kept for it.
"""

from collections.abc import AsyncIterator

import falcon
import falcon.asgi
import msgspec

from roost.ledger.feed import Commit, Stretch, commits_after
from roost.placement.errors import BadRequest, Gone, TooMany
from roost.placement.http.answers import answer
from roost.placement.http.request import Request, Response
from roost.placement.v1.operations import EVENTS, JSON, LARGEST_SEQ
from roost.placement.v1.parameters import parse
from roost.placement.v1.resource import Resource, Service
from roost.storage import StorageError

MOST_BYTES = 4 * 2**20
"""A page has no further commit once its commits have so many bytes."""

STREAMED_COMMITS = 50
STREAMED_BYTES = 2**18
"""What a stream reads at once."""

HEARTBEAT_SECONDS = 15.0

MOST_STREAMS = 500
"""Streams that one worker serves at once."""


class Changes(Resource):
    """/v1/changes"""

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._streams = 0

    async def on_get(self, req: Request, resp: Response) -> None:
        asked = parse(req)
        after, limit, wait = (asked.numbers[name] for name in ("after", "limit", "wait"))
        if req.client_prefers((JSON, EVENTS)) == EVENTS:
            await self._begin_stream(resp, _last_event(req, after))
            return
        stretch = await self._read(after, limit, MOST_BYTES)
        if not stretch.commits and wait and await self.follower.beyond(after, wait):
            stretch = await self._read(after, limit, MOST_BYTES)
        commits = [
            {"seq": commit.seq, "at": commit.at, "changes": msgspec.Raw(commit.changes)}
            for commit in stretch.commits
        ]
        answer(req, resp, {"commits": commits, "head": stretch.head})

    async def _begin_stream(self, resp: Response, after: int) -> None:
        if self._streams >= MOST_STREAMS:
            raise TooMany(f"This worker serves {MOST_STREAMS} streams already; try again later.")
        first = await self._read(after, STREAMED_COMMITS, STREAMED_BYTES)
        resp.cache_control = ("no-store",)
        resp.set_header("x-accel-buffering", "no")
        resp.sse = self._stream(after, first)

    async def _stream(self, after: int, stretch: Stretch) -> AsyncIterator[falcon.asgi.SSEvent]:
        self._streams += 1
        try:
            # Says at once that the stream is there, and when to come again once it ends.
            yield falcon.asgi.SSEvent(comment="changes", retry=1000)
            while not self.follower.closed:
                for commit in stretch.commits:
                    yield _event(commit)
                    after = commit.seq
                    if self.follower.closed:
                        return
                if not stretch.commits and not await self.follower.beyond(after, HEARTBEAT_SECONDS):
                    if not self.follower.closed:
                        yield falcon.asgi.SSEvent(comment="heartbeat")
                    continue
                stretch = await self._read(after, STREAMED_COMMITS, STREAMED_BYTES)
        except Gone as gone:
            yield falcon.asgi.SSEvent(event="gone", text=str(gone))
        except StorageError:
            # The client comes again and is told, or finds the database back.
            return
        finally:
            self._streams -= 1

    async def _read(self, after: int, most: int, most_bytes: int) -> Stretch:
        """The commits after a version. Raises `Gone`, and `BadRequest` for a version yet to come."""
        stretch = await self.ledger.database.read(
            lambda connection: commits_after(connection, after, most, most_bytes)
        )
        if after > stretch.head:
            raise BadRequest(f"There is no version {after} yet: the newest is {stretch.head}.")
        if stretch.oldest > after + 1:
            raise Gone(
                f"Commits after {after} are trimmed away, the oldest kept is {stretch.oldest}: "
                f"read the whole state anew, then follow from its version."
            )
        return stretch


def _last_event(req: Request, after: int) -> int:
    """Where a stream begins: what a client that comes again had last, else what it asks for."""
    text = req.get_header("last-event-id")
    if not text:
        return after
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST_SEQ))):
        raise BadRequest(f"Last-Event-ID must be the number of a commit. Got: {text[:40]}")
    if int(text) > LARGEST_SEQ:
        raise BadRequest(f"Last-Event-ID must be at most {LARGEST_SEQ}. Got: {text}")
    return int(text)


def _event(commit: Commit) -> falcon.asgi.SSEvent:
    data = f'{{"seq":{commit.seq},"at":{commit.at},"changes":{commit.changes}}}'
    return falcon.asgi.SSEvent(event="commit", event_id=str(commit.seq), text=data)
