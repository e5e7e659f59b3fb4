"""Cross-origin requests: access to an API from web pages of other origins.

Source: the Fetch standard; the options are those of oslo.middleware, group ``cors``.
"""

from roost.process.options import OptionStruct, option
from roost.web.request import Request, Response

_ALWAYS_ALLOWED = frozenset(
    (
        "accept",
        "accept-language",
        "cache-control",
        "content-language",
        "content-type",
        "expires",
        "last-modified",
        "pragma",
    )
)


class CorsOptions(OptionStruct, frozen=True, group="cors"):
    """The origins whose pages may call the API, and the methods and headers that they may use."""

    allowed_origin: tuple[str, ...] = option(
        (),
        help="Pages of these origins may call the API. Without one there is no CORS. With * browsers "
        "may not send credentials.",
    )
    allow_credentials: bool = option(True, help="These pages may send credentials.")
    expose_headers: tuple[str, ...] = option(
        (
            "X-Auth-Token",
            "X-Openstack-Request-Id",
            "X-Subject-Token",
            "X-Service-Token",
            "OpenStack-API-Version",
            "Idempotent-Replayed",
        ),
        help="These pages may read these headers of responses.",
    )
    allow_methods: tuple[str, ...] = option(
        ("GET", "PUT", "POST", "DELETE", "PATCH"), help="They may use these methods."
    )
    allow_headers: tuple[str, ...] = option(
        (
            "X-Auth-Token",
            "X-Openstack-Request-Id",
            "X-Identity-Status",
            "X-Roles",
            "X-Service-Catalog",
            "X-User-Id",
            "X-Tenant-Id",
            "OpenStack-API-Version",
            "Idempotency-Key",
        ),
        help="These pages may send these headers.",
    )
    max_age: int = option(3600, help="A browser may remember for this many seconds what is allowed.")


class Cors:
    """Middleware, before all others: preflight requests have no token, so every OPTIONS request ends here."""

    def __init__(self, options: CorsOptions) -> None:
        self._options = options
        self._allowed_headers = _ALWAYS_ALLOWED.union(name.lower() for name in options.allow_headers)

    async def process_request(self, req: Request, resp: Response) -> None:
        if req.method == "OPTIONS":
            resp.status = 200
            resp.complete = True

    async def process_response(
        self, req: Request, resp: Response, resource: object, req_succeeded: bool
    ) -> None:
        origin = req.get_header("origin")
        if origin is None or not self._knows(origin):
            return
        if req.method != "OPTIONS":
            self._share_with(resp, origin)
            if self._options.expose_headers:
                resp.set_header("access-control-expose-headers", ",".join(self._options.expose_headers))
            return
        method = req.get_header("access-control-request-method")
        wanted = req.get_header("access-control-request-headers") or ""
        headers = [name.strip() for name in wanted.split(",") if name.strip()]
        if method not in self._options.allow_methods:
            return
        if not all(name.lower() in self._allowed_headers for name in headers):
            return
        self._share_with(resp, origin)
        resp.set_header("access-control-allow-methods", method)
        if self._options.max_age:
            resp.set_header("access-control-max-age", str(self._options.max_age))
        if headers:
            resp.set_header("access-control-allow-headers", ",".join(headers))

    def _knows(self, origin: str) -> bool:
        return origin in self._options.allowed_origin or "*" in self._options.allowed_origin

    def _share_with(self, resp: Response, origin: str) -> None:
        known = origin in self._options.allowed_origin
        resp.set_header("access-control-allow-origin", origin if known else "*")
        resp.append_header("vary", "Origin")
        # With the origin * browsers refuse credentials anyway.
        if known and self._options.allow_credentials:
            resp.set_header("access-control-allow-credentials", "true")
