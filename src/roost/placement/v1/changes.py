"""``/v1/changes``: every commit in its order, as JSON or as a stream of events.

A stream reads commits from the database itself, a bounded number at a time, and only as fast as its client
takes them. A slow client falls behind alone, and the server keeps nothing for it.
"""

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, NamedTuple

import falcon
import falcon.asgi
import msgspec
from msgspec import Meta

from roost.ledger import Ledger
from roost.ledger.feed import Commit, Stretch, commits_after
from roost.model.change import Change
from roost.placement.v1.service import V1Service
from roost.storage import StorageError
from roost.web.errors import BadRequest, Gone, TooMany
from roost.web.operation import JSON
from roost.web.query import LARGEST_PAGE
from roost.web.request import Request, Response

EVENTS: Final = "text/event-stream"

LARGEST_SEQ: Final = 2**63 - 1
"""The largest number of a commit."""

MOST_BYTES = 4 * 2**20
"""Characters of changes after which a page takes no further commit."""

STREAMED_COMMITS = 50
"""Commits that a stream reads at once at most."""

STREAMED_BYTES = 2**18
"""Characters of changes after which a stream reads no further commit at once."""

HEARTBEAT_SECONDS = 15.0
"""Seconds without a commit after which a stream sends a comment."""

MOST_STREAMS = 500
"""Streams and long polls that one worker serves at once. A further request is refused with 429."""


class ShownCommit(msgspec.Struct, forbid_unknown_fields=True):
    """A commit and its changes. Each change carries the fact before and after."""

    seq: Annotated[int, Meta(ge=0)]
    at: Annotated[float, Meta(description="Seconds since the epoch.")]
    changes: list[Change]


class ChangePage(msgspec.Struct, forbid_unknown_fields=True):
    """Commits in their order."""

    commits: Annotated[list[ShownCommit], Meta(max_length=LARGEST_PAGE)]
    head: Annotated[int, Meta(ge=0, description="The number of the newest commit.")]
    history: Annotated[
        str, Meta(description="Identity and incarnation of the database. A restore from a backup changes it.")
    ]


class FeedPosition(NamedTuple):
    """The position of a client, after commit ``after``. ``history``: that of the commit; None: unknown."""

    after: int
    history: str | None


async def list_changes(service: V1Service, req: Request, resp: Response) -> dict[str, Any] | None:
    """List every commit in its order.

    The response is JSON, or a stream of server-sent events for a client that prefers those. The id of an
    event is the number of the commit and the history, its data is the commit. Comments in between are
    heartbeats. The header Last-Event-ID of a client that reconnects replaces `after` and `history`. An event
    `gone` ends a stream that is too far behind, or whose history has ended.
    """
    asked = req.query
    since = FeedPosition(asked.after, asked.history)
    if req.client_prefers((JSON, EVENTS)) == EVENTS:
        await begin_stream(service, resp, _last_event(req, since))
        return None
    stretch = await _read(service.ledger, since, asked.limit, MOST_BYTES)
    if not stretch.commits and asked.wait and await _beyond(service, asked.after, asked.wait):
        stretch = await _read(service.ledger, since, asked.limit, MOST_BYTES)
    commits = [
        {"seq": commit.seq, "at": commit.at, "changes": msgspec.Raw(commit.changes)}
        for commit in stretch.commits
    ]
    return {"commits": commits, "head": stretch.head, "history": stretch.history}


async def _beyond(service: V1Service, after: int, seconds: float) -> bool:
    """Wait for a commit after ``after``. Raises `TooMany` as `begin_stream` does."""
    _check_place(service)
    service.polls += 1
    try:
        return await service.follower.beyond(after, seconds)
    finally:
        service.polls -= 1


async def begin_stream(service: V1Service, resp: Response, since: FeedPosition) -> None:
    """Answer with a stream of the commits after ``since``.

    Raises:
        TooMany: The worker serves `MOST_STREAMS` streams and long polls already.
        BadRequest: There is no commit of that number yet.
        Gone: The commits after it are trimmed away, or the database has another history.
    """
    _check_place(service)
    first = await _read(service.ledger, since, STREAMED_COMMITS, STREAMED_BYTES)
    # Other streams may have begun meanwhile.
    _check_place(service)
    resp.cache_control = ("no-store",)
    resp.set_header("x-accel-buffering", "no")
    # A stream whose client is gone before the first event never runs, so it cannot count itself.
    resp.sse = stream = _stream(service, FeedPosition(since.after, first.history), first)
    service.streams.add(stream)


def _check_place(service: V1Service) -> None:
    if len(service.streams) + service.polls >= MOST_STREAMS:
        raise TooMany(f"This worker serves {MOST_STREAMS} streams and long polls already; try again later.")


async def _stream(
    service: V1Service, since: FeedPosition, stretch: Stretch
) -> AsyncIterator[falcon.asgi.SSEvent]:
    follower = service.follower
    try:
        # Sent at once, so that the client has the headers; retry: milliseconds before it reconnects.
        yield falcon.asgi.SSEvent(comment="changes", retry=1000)
        while not follower.closed:
            for commit in stretch.commits:
                since = FeedPosition(commit.seq, stretch.history)
                yield _event(commit, since)
                if follower.closed:
                    return
            if not stretch.commits and not await follower.beyond(since.after, HEARTBEAT_SECONDS):
                if not follower.closed:
                    yield falcon.asgi.SSEvent(comment="heartbeat")
                continue
            stretch = await _read(service.ledger, since, STREAMED_COMMITS, STREAMED_BYTES)
    except Gone as gone:
        yield falcon.asgi.SSEvent(event="gone", text=str(gone))
    except StorageError:
        # The client reconnects: it then gets a 503, or the database answers again.
        return


async def _read(ledger: Ledger, since: FeedPosition, most: int, most_bytes: int) -> Stretch:
    """Read the commits after ``since``. Raises `Gone`, and `BadRequest` if that commit does not exist yet."""
    after = since.after
    stretch = await ledger.database.read(
        lambda connection: commits_after(connection, after, most, most_bytes)
    )
    if since.history is not None and since.history != stretch.history:
        raise Gone(
            f"The history {since.history[:80]} has ended: the database was restored from a backup or is "
            f"another one, and has the history {stretch.history}. Read the whole state anew, then follow "
            "from its version."
        )
    if after > stretch.head:
        raise BadRequest(f"There is no version {after} yet: the newest is {stretch.head}.")
    if stretch.oldest > after + 1:
        raise Gone(
            f"Commits after {after} are trimmed away, the oldest kept is {stretch.oldest}: "
            f"read the whole state anew, then follow from its version."
        )
    return stretch


def _last_event(req: Request, since: FeedPosition) -> FeedPosition:
    """Return the start of a stream: the last event of a client that reconnects, else ``since``."""
    text = req.get_header("last-event-id")
    if not text:
        return since
    number, _, history = text.partition("@")
    if not (number.isascii() and number.isdigit() and len(number) <= len(str(LARGEST_SEQ))):
        raise BadRequest(f"Last-Event-ID must be the id of an event of this stream. Got: {text[:80]}")
    if int(number) > LARGEST_SEQ:
        raise BadRequest(f"Last-Event-ID must be at most {LARGEST_SEQ}. Got: {number}")
    return FeedPosition(int(number), history or None)


def _event(commit: Commit, at: FeedPosition) -> falcon.asgi.SSEvent:
    data = f'{{"seq":{commit.seq},"at":{commit.at},"changes":{commit.changes}}}'
    return falcon.asgi.SSEvent(event="commit", event_id=f"{at.after}@{at.history}", text=data)
