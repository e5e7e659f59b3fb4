"""Several ASGI applications behind one server."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Coroutine[Any, Any, None]]


def dispatch(under: Mapping[str, Application], otherwise: Application) -> Application:
    """Return an application that hands each request to one of several, by prefix of the path.

    The longest prefix that matches decides; if none matches, the request goes to ``otherwise``. A
    prefix matches itself and the paths below it: ``/v1`` matches ``/v1/changes``, not ``/v1x``.
    """
    paths = sorted(under, key=len, reverse=True)

    async def application(scope: Message, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        chosen = next((each for each in paths if path == each or path.startswith(f"{each}/")), None)
        await (otherwise if chosen is None else under[chosen])(scope, receive, send)

    return application
