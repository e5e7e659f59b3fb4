"""A page: an operation whose answer is a view, shown as HTML or as JSON."""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import falcon
import htpy as h
import msgspec
from msgspec import Meta

from roost.dashboard.conventions import content_policy, wants_json
from roost.dashboard.form import FormQuery
from roost.dashboard.html.shell import Viewing, shell
from roost.dashboard.service import DashboardService
from roost.model.visibility import Viewer, visible
from roost.web.operation import Operation
from roost.web.policy import Rule
from roost.web.request import Request, Response


class PageQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The query of every page. ``format``: a page, or its view as JSON."""

    format: Literal["html", "json"] = "html"


class TimedQuery(PageQuery, forbid_unknown_fields=True, kw_only=True):
    """The query of a page that has a past. ``at``: a commit, a time as ISO 8601, or seconds since 1970."""

    at: Annotated[str, Meta(max_length=40)] | None = None


@dataclass(frozen=True)
class Page:
    """A page.

    - ``view``: ``view(service, req, **path_parameters)`` returns the view, a frozen struct.
    - ``html``: ``html(view, viewing)`` returns the content of the page.
    - ``title``: of the view. ``here``: the address of its entry in the navigation.
      ``wide``: the content has no maximum width.
    - ``rule``: the policy rule. With ``all_projects`` the viewer gets the part of the view that they may see.
    """

    path: str
    rule: Rule
    view: Callable[..., Awaitable[Any]]
    html: Callable[[Any, Viewing], h.Node]
    title: Callable[[Any], str]
    here: str = ""
    query: type[PageQuery] = PageQuery
    wide: bool = False

    def operation(self) -> Operation:
        """Return the operation that serves the page."""
        return Operation("GET", self.path, self.rule, self._answer, query=FormQuery(self.query), provides=())

    async def _answer(self, service: DashboardService, req: Request, resp: Response, **params: str) -> None:
        view = await self.view(service, req, **params)
        if self.rule.all_projects is not None:
            view = visible(view, req.viewer)
        if wants_json(req):
            resp.content_type = falcon.MEDIA_JSON
            resp.data = msgspec.json.encode(view)
            return
        viewing = viewing_of(service, req, timed=issubclass(self.query, TimedQuery))
        show(resp, viewing, self.title(view), self.html(view, viewing), here=self.here, wide=self.wide)


def show(
    resp: Response, viewing: Viewing, title: str, content: h.Node, *, here: str = "", wide: bool = False
) -> None:
    """Fill a response with a page."""
    resp.content_type = falcon.MEDIA_HTML
    resp.set_header("content-security-policy", content_policy(viewing.nonce))
    resp.data = shell(viewing, title, content, here=here, wide=wide).encode()


def viewing_of(service: DashboardService, req: Request, *, timed: bool = False) -> Viewing:
    """Return the viewer of a page, of a request that has an identity."""
    session = service.sessions.session(req.headers)
    user = req.identity.user_id if session is None else session.user
    return Viewing(
        user,
        service.is_operator(req.identity),
        None if session is None else session.guard,
        req.relative_uri,
        at=getattr(req.query, "at", None),
        timed=timed,
        nonce=secrets.token_urlsafe(16),
        acts=service.actions is not None,
    )


def is_operator(req: Request) -> bool:
    """Return whether the viewer of a page with ``all_projects`` sees all of it."""
    return req.viewer is Viewer.OPERATOR
