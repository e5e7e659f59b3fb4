"""Sending long responses: in parts, each within a time limit.

The server takes a whole body at once, and keeps it until its client has read it or goes away. So a client
that reads slowly would keep a long answer in memory for as long as it likes, and nobody would know.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from roost.metrics import catalogue as metrics
from roost.web.dispatch import Message
from roost.web.observation import Observation

PART: Final = 256 * 1024
"""Bytes of a part. A body that is not longer is handed to the server whole."""


class PatientSender:
    """Sends one response.

    ``seconds``: the time in which the client must take a part; then ``cut_soon`` is called with the ASGI
    scope. ``count`` is called with the bytes of a long body when it begins to wait, and with less than 0 for
    bytes that are taken.
    """

    __slots__ = ("_count", "_cut_soon", "_request", "_seconds")

    def __init__(
        self,
        request: Observation,
        seconds: float,
        count: Callable[[int], None],
        cut_soon: Callable[[Message], None],
    ) -> None:
        self._request = request
        self._seconds = seconds
        self._count = count
        self._cut_soon = cut_soon

    async def send(self, message: Message) -> None:
        """Send one message. Raises `TimeoutError` if the client is too slow."""
        body = message.get("body", b"")
        if len(body) <= PART:
            await self._request.send(message)
            return
        left = len(body)
        self._count(left)
        try:
            for at in range(0, len(body), PART):
                part = body[at : at + PART]
                more = at + PART < len(body) or message.get("more_body", False)
                async with asyncio.timeout(self._seconds):
                    await self._request.send({"type": message["type"], "body": part, "more_body": more})
                left -= len(part)
                self._count(-len(part))
        except TimeoutError:
            metrics.SLOW_CLIENTS.labels("answer").inc()
            self._cut_soon(self._request.scope)
            raise
        finally:
            self._count(-left)
