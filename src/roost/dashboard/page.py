"""A page: an operation whose answer is a view, shown as HTML or as JSON."""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import falcon
import htpy as h
import msgspec
from markupsafe import Markup
from msgspec import Meta

from roost.dashboard.conventions import content_policy, wants_json
from roost.dashboard.form import FormQuery
from roost.dashboard.html.shell import Viewing, shell
from roost.dashboard.past.past_moments import PastMissing
from roost.dashboard.service import DashboardService
from roost.model.visibility import Viewer, visible
from roost.web.operation import Operation
from roost.web.policy import Rule
from roost.web.request import Request, Response

_ANY_NONCE = "nonce-of-the-response"
"""Stands in kept content for the nonce of each response that has it."""


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
    - ``files``: names of the scripts and styles that this page loads besides those of all pages. They are in
      its head: regions that are fetched again have no scripts.
    - ``kept_seconds``: the content is made once for all who ask within these seconds. Only for pages that all
      their viewers see alike.
    """

    path: str
    rule: Rule
    view: Callable[..., Awaitable[Any]]
    html: Callable[[Any, Viewing], h.Node]
    title: Callable[[Any], str]
    here: str = ""
    query: type[PageQuery] = PageQuery
    wide: bool = False
    files: tuple[str, ...] = ()
    kept_seconds: float = 0.0

    def operation(self) -> Operation:
        """Return the operation that serves the page."""
        return Operation("GET", self.path, self.rule, self._answer, query=FormQuery(self.query), provides=())

    async def _answer(self, service: DashboardService, req: Request, resp: Response, **params: str) -> None:
        if wants_json(req):
            resp.content_type = falcon.MEDIA_JSON
            resp.data = msgspec.json.encode(await self._view(service, req, params))
            return
        region = req.get_header("hx-request") is not None
        viewing = viewing_of(service, req, timed=issubclass(self.query, TimedQuery))
        if viewing.timed and viewing.operator and not region:
            # A text that is no moment is refused before the page is made.
            viewing = viewing._replace(shown=await service.past.shown(viewing.at))
        try:
            title, content = await self._made(service, req, params, viewing)
        except PastMissing as error:
            if viewing.shown is None:
                raise
            # The frame stays, with the bar that leads to what is kept.
            resp.status = error.status
            viewing = viewing._replace(shown=viewing.shown._replace(missing=str(error)))
            title, content = "Not kept", Markup("")
        if region:
            # A region of the page is fetched again: the frame around it is there already.
            resp.content_type = falcon.MEDIA_HTML
            resp.set_header("content-security-policy", content_policy(viewing.nonce))
            resp.data = content.encode()
            return
        show(resp, viewing, title, content, here=self.here, wide=self.wide, files=self.files)

    async def _made(
        self, service: DashboardService, req: Request, params: Mapping[str, str], viewing: Viewing
    ) -> tuple[str, Markup]:
        """Return the title and the content of the page, which may be kept ones."""
        if self.kept_seconds:
            key = ("page", req.relative_uri, viewing.acts)
            made = partial(self._content, service, req, params, viewing._replace(nonce=_ANY_NONCE))
            title, kept = await service.kept(key, self.kept_seconds, made)
            return title, Markup(kept.replace(_ANY_NONCE, viewing.nonce or ""))
        title, text = await self._content(service, req, params, viewing)
        return title, Markup(text)

    async def _view(self, service: DashboardService, req: Request, params: Mapping[str, str]) -> Any:
        view = await self.view(service, req, **params)
        return view if self.rule.all_projects is None else visible(view, req.viewer)

    async def _content(
        self, service: DashboardService, req: Request, params: Mapping[str, str], viewing: Viewing
    ) -> tuple[str, str]:
        """Return the title and the content of the page."""
        view = await self._view(service, req, params)
        return self.title(view), f"{h.fragment[self.html(view, viewing)]}"


def show(
    resp: Response,
    viewing: Viewing,
    title: str,
    content: h.Node,
    *,
    here: str = "",
    wide: bool = False,
    files: Sequence[str] = (),
) -> None:
    """Fill a response with a page."""
    resp.content_type = falcon.MEDIA_HTML
    resp.set_header("content-security-policy", content_policy(viewing.nonce))
    resp.data = shell(viewing, title, content, here=here, wide=wide, files=files).encode()


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
