"""A worker's application whose event loop is watched."""

from collections.abc import Callable

from roost.process.loop_watch import watching
from roost.web.dispatch import Application, Message, Receive, Send

STARTED = "lifespan.startup.complete"


class WatchedApplication:
    """Wraps an ASGI application and watches the event loop from the start of its lifespan to the end.

    ``beat``: called while the loop turns. Times in which the loop is blocked are counted once requests are
    served.
    """

    def __init__(self, application: Application, beat: Callable[[], object]) -> None:
        self._application = application
        self._beat = beat

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._application(scope, receive, send)
            return
        with watching(self._beat) as watch:

            async def send_on(message: Message) -> None:
                await send(message)
                if message["type"] == STARTED:
                    watch.begin()

            await self._application(scope, receive, send_on)
