"""Sending long responses: in parts, each within a time limit.

The server takes a whole body at once, and keeps it until its client has read it or disconnects. So a client
that reads slowly would keep a long answer in memory without limit, and unnoticed.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from roost.process.metrics import catalogue as metrics
from roost.web.dispatch import Message
from roost.web.observation import Observation

PART: Final = 2**18
"""Bytes of a part."""

LEAST_RATE: Final = 2**20
"""Bytes per second that a client must read on average over the whole body.

A body in memory counts against the limit of answers, so a slow client keeps others from being answered.
"""


class PatientSender:
    """Sends long bodies.

    ``seconds``: the time limit for each part, and the time that the whole body has beside that by
    `LEAST_RATE`. After either, ``cut_soon`` is called with the ASGI scope. ``count`` is called with the bytes
    of a long body when its sending begins, and with negative numbers as the client reads it.
    """

    def __init__(
        self,
        seconds: float,
        count: Callable[[int], None],
        cut_soon: Callable[[Message], None],
    ) -> None:
        self._seconds = seconds
        self._count = count
        self._cut_soon = cut_soon

    async def send(self, request: Observation, message: Message) -> None:
        """Send one body. Raises `TimeoutError` if the client is too slow."""
        body = message["body"]
        left = len(body)
        self._count(left)
        clock = asyncio.get_running_loop().time
        end = clock() + self._seconds + left / LEAST_RATE
        try:
            for at in range(0, len(body), PART):
                part = bytes(body[at : at + PART])
                more = at + PART < len(body) or message.get("more_body", False)
                async with asyncio.timeout_at(min(clock() + self._seconds, end)):
                    await request.send_part({"type": message["type"], "body": part, "more_body": more})
                left -= len(part)
                self._count(-len(part))
        except TimeoutError:
            metrics.SLOW_CLIENTS.labels("answer").inc()
            self._cut_soon(request.scope)
            raise
        finally:
            self._count(-left)
