"""A worker's application whose event loop is watched."""

from collections.abc import Callable

from roost.process.loop_watch import watching
from roost.web.dispatch import Application, Message, Receive, Send

STARTED = "lifespan.startup.complete"


class Watched:
    """An ASGI application around another one, which watches the event loop from its start to its end.

    ``beat``: called while the loop turns. Holds count from the moment in which requests are served.
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
