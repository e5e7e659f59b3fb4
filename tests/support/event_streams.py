"""Event streams of a page server, with events that a test sends."""

import queue
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

from support.page_server import PageServer, Reply


class EventStreams:
    """Streams at /ui/live: each request gets the events that are sent while it lasts."""

    def __init__(self, server: PageServer) -> None:
        self._server = server
        self.topics: list[list[str]] = []
        self._queues: list[queue.Queue[bytes | None]] = []
        self.status = 200
        server.answers["/ui/live"] = self._answer

    def send(self, topic: str, data: str) -> None:
        for each in self._queues:
            each.put(f"event: {topic}\ndata: {data}\n\n".encode())

    def end(self) -> None:
        while self._queues:
            self._queues.pop().put(None)

    def _answer(self, _: dict[str, str]) -> Reply:
        if self.status != 200:
            return Reply(status=self.status)
        self.topics.append(sorted(parse_qs(urlsplit(self._server.asked[-1]).query).get("topic", [])))
        events: queue.Queue[bytes | None] = queue.Queue()
        self._queues.append(events)

        def parts() -> Iterator[bytes]:
            yield b"retry: 100\n\n"
            while not self._server.closing.is_set():
                try:
                    event = events.get(timeout=0.1)
                except queue.Empty:
                    yield b":\n\n"  # fails where the browser has left
                    continue
                if event is None:
                    return
                yield event

        return Reply(media_type="text/event-stream", parts=parts())
