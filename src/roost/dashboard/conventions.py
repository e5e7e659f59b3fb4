"""The head of each response, and the form of errors: pages for people, JSON for programs."""

import gzip
from typing import Final
from urllib.parse import quote

import falcon

from roost.dashboard.addresses import LOGIN, ROOT
from roost.dashboard.html.error_page import error_page, reload_page
from roost.dashboard.html.shell import Viewing
from roost.web.conventions import Conventions
from roost.web.errors import HTTPError, Unauthorised
from roost.web.request import Request, Response

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""The content security policy: nothing from elsewhere, nothing inline, no eval."""


def content_policy(nonce: str | None = None) -> str:
    """Return the content security policy of a response. ``nonce``: of a page that htmx works on."""
    if nonce is None:
        return _POLICY
    scripts = _POLICY.replace("script-src 'self'", f"script-src 'self' 'nonce-{nonce}'")
    return f"{scripts}; require-trusted-types-for 'script'; trusted-types htmx roost roost-page"


HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}

_SMALL = 1_000
"""Bytes up to which a response is sent as it is."""

_LEVEL = 4
"""Level of compression of pages. A higher one takes twice the time for a few percent."""

_COMPRESSED = ("text/", "application/json", "application/octet-stream", "image/svg+xml")


class DashboardConventions(Conventions):
    """The conventions of the dashboard. Responses are compressed, and kept by no cache unless they say so."""

    def __init__(self) -> None:
        super().__init__("dashboard")

    def accepts(self, req: Request, media_types: tuple[str, ...]) -> bool:
        return True

    def finish(self, req: Request, resp: Response) -> None:
        for name, value in HEADERS.items():
            resp.set_header(name, value)
        if resp.get_header("content-security-policy") is None:
            resp.set_header("content-security-policy", content_policy())
        if resp.get_header("cache-control") is None:
            resp.set_header("cache-control", "no-store")
        if resp.data is not None:
            _compress(req, resp)

    def refuse(self, req: Request, resp: Response, error: HTTPError) -> None:
        """Answer programs with JSON, and people with a page; without a session they get the login."""
        if wants_json(req):
            super().refuse(req, resp, error)
            return
        if isinstance(error, Unauthorised):
            self._login(req, resp)
            return
        title = falcon.code_to_http_status(error.status).partition(" ")[2]
        page = error_page(Viewing.of_nobody(), error.status, title, str(error) or title, req.request_id)
        _fill(resp, page)

    def _login(self, req: Request, resp: Response) -> None:
        """Send to the login, and back here after it.

        A browser sends no cookie with a request that another site's link has made (SameSite=Strict). So such
        a request is answered by a page that loads itself again: that request is the dashboard's own.
        """
        here = req.relative_uri if req.method == "GET" else ROOT
        if req.get_header("sec-fetch-site") == "cross-site" and req.method == "GET":
            resp.status = 200
            _fill(resp, reload_page(here))
            return
        address = f"{LOGIN}?next={quote(here, safe='')}"
        if req.get_header("hx-request") is not None:
            resp.set_header("hx-redirect", address)
            return
        resp.status = 303
        resp.set_header("location", address)


def wants_json(req: Request) -> bool:
    """Return whether a request asks for the JSON twin of a page."""
    if req.query_string and "format=json" in req.query_string.split("&"):
        return True
    accept = req.get_header("accept") or ""
    return "application/json" in accept and "text/html" not in accept


def _fill(resp: Response, page: str) -> None:
    resp.content_type = falcon.MEDIA_HTML
    resp.data = page.encode()


def _compress(req: Request, resp: Response) -> None:
    body = resp.data
    resp.append_header("vary", "accept-encoding")
    if body is None or len(body) <= _SMALL or resp.get_header("content-encoding") is not None:
        return
    if "gzip" not in (req.get_header("accept-encoding") or ""):
        return
    if not (resp.content_type or "").startswith(_COMPRESSED):
        return
    resp.data = gzip.compress(body, _LEVEL, mtime=0)
    resp.set_header("content-encoding", "gzip")
