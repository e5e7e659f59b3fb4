"""``/healthz``, ``/readyz`` and ``/healthcheck``, for supervisors and load balancers. They need no token.

``/healthcheck`` is that of other OpenStack services, with the option of a file that disables a process.

Source: ``oslo_middleware/healthcheck`` of oslo.middleware 8.2.
"""

import html
from typing import Final

import falcon
import msgspec

from roost.web.app import Kernel, create_app
from roost.web.auth import NoAuth
from roost.web.auth.rules import PolicyRules
from roost.web.dispatch import Application
from roost.web.health import CheckResult, Health, Readiness
from roost.web.operation import JSON, OPEN, Operation
from roost.web.policy import Policy
from roost.web.request import Request, Response

_TYPES = (falcon.MEDIA_TEXT, falcon.MEDIA_HTML, falcon.MEDIA_JSON)
_FILE = "file"


class Liveness(msgspec.Struct, frozen=True):
    """The event loop answers."""

    alive: bool = True


async def live(health: Health, req: Request, resp: Response) -> Liveness:
    """Tell that the process answers. Nothing else is checked."""
    resp.cache_control = ["no-store"]
    return Liveness()


async def ready(health: Health, req: Request, resp: Response) -> Readiness:
    """Tell whether the process can serve requests, by several checks."""
    resp.cache_control = ["no-store"]
    report = await health.readiness()
    if health.options.disabled(_port(req)):
        checks = (*report.checks, CheckResult(_FILE, False, "a file disables this process"))
        report = Readiness(False, checks)
    resp.status = 200 if report.ready else 503
    return report


async def check(health: Health, req: Request, resp: Response) -> None:
    """Tell whether a file disables the process."""
    resp.cache_control = ["no-store"]
    disabled = health.options.disabled(_port(req))
    text = "DISABLED BY FILE" if disabled else "OK"
    if req.method == "HEAD":
        resp.status = 503 if disabled else 204
        return
    resp.status = 503 if disabled else 200
    resp.content_type = req.client_prefers(_TYPES) or falcon.MEDIA_TEXT
    if resp.content_type == falcon.MEDIA_JSON:
        resp.data = msgspec.json.encode({"detailed": False, "reasons": [text]})
    elif resp.content_type == falcon.MEDIA_HTML:
        title = "Healthcheck Status"
        resp.text = f"<html><head><title>{title}</title></head><body>{html.escape(text)}</body></html>"
    else:
        resp.text = text


def _port(req: Request) -> int | None:
    """The port at which the server listens, None on a UNIX socket."""
    server = req.scope.get("server")
    # Granian has the port as text, and ASGI has None for the port of a UNIX socket.
    return None if server is None or server[1] is None else int(server[1])


OPERATIONS: Final = tuple(
    Operation(method, path, OPEN, handler, answer=answer, statuses=statuses, provides=provides)
    for path, handler, answer, statuses, provides in (
        ("/healthz", live, Liveness, (), (JSON,)),
        ("/readyz", ready, Readiness, (503,), (JSON,)),
        ("/healthcheck", check, None, (204, 503), ()),
    )
    for method in ("GET", "HEAD")
)


DOCUMENTED: Final = tuple(operation for operation in OPERATIONS if operation.method == "GET")
"""The operations that the OpenAPI document describes. HEAD is GET without the body."""


def health_paths(health: Health) -> dict[str, Application]:
    """Return the application by each of its paths. All are open, so it authenticates no requests."""
    app: Application = create_app(OPERATIONS, Kernel(health, NoAuth(), Policy(PolicyRules((), None, True))))
    return {operation.path: app for operation in OPERATIONS}
