"""The operations of login and log-out."""

from typing import Annotated, Any, Final, Protocol
from urllib.parse import urlsplit

import falcon
import msgspec
from msgspec import Meta

from roost.dashboard.addresses import LOGIN, LOGOUT, ROOT
from roost.dashboard.form import LARGEST_FORM, FormOperation
from roost.dashboard.options import DashboardOptions
from roost.dashboard.session.authenticator import COOKIE, SECURE_COOKIE, SessionAuthenticator
from roost.dashboard.session.ended import EndedSessions
from roost.dashboard.session.login_limit import LoginLimit
from roost.dashboard.session.login_methods import IssuedToken, LoginMethods, PasswordCredentials
from roost.dashboard.session.login_page import login_page
from roost.dashboard.session.seal import SessionSeal, SessionTooLarge, new_session
from roost.web.auth import Authenticator, IdentityUnavailable
from roost.web.errors import BadRequest, Unavailable
from roost.web.operation import OPEN, Operation
from roost.web.policy import Rule
from roost.web.query import Query
from roost.web.request import Request, Response

DEVELOPMENT_TOKEN: Final = "admin"
"""The token of a session of a service that believes every token."""

_Field = Annotated[str, Meta(max_length=8192)]


class LoginQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The query of the login. ``next``: the address to go to. ``once``: the token of a printed address."""

    next: Annotated[str, Meta(max_length=4096)] = ROOT
    once: Annotated[str, Meta(max_length=200)] | None = None


class LoginForm(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of the login: a token, or name and password."""

    next: _Field = ROOT
    token: _Field = ""
    user: _Field = ""
    password: _Field = ""
    user_domain: _Field = "Default"
    project: _Field = ""
    project_domain: _Field = "Default"


class LoginDesk(msgspec.Struct, frozen=True):
    """The parts that the operations of login and log-out use."""

    options: DashboardOptions
    authenticator: Authenticator
    sessions: SessionAuthenticator
    seal: SessionSeal
    ended: EndedSessions
    methods: LoginMethods
    limit: LoginLimit


class HasLogin(Protocol):
    """The part of the dashboard's service that the operations need."""

    @property
    def desk(self) -> LoginDesk: ...

    @property
    def clock(self) -> Any: ...


async def show_login(service: HasLogin, req: Request, resp: Response) -> None:
    """Show the page of login, or begin a session by the token of a printed address."""
    query: LoginQuery = req.query
    once = service.desk.methods.once
    if once is not None and query.once is not None:
        service.desk.limit.check()
        if once.use(query.once):
            _begin(service, req, resp, IssuedToken(DEVELOPMENT_TOKEN, DEVELOPMENT_TOKEN, 0.0), ROOT)
            return
        service.desk.limit.failed()
    _page(service, resp, query.next, spent=query.once is not None)


async def log_in(service: HasLogin, req: Request, resp: Response) -> None:
    """Begin a session with a token, or with name and password."""
    desk, form = service.desk, req.body
    if desk.methods.once is not None:
        raise BadRequest("This service has no authentication: sessions begin with the printed address.")
    desk.limit.check()
    try:
        issued = await _identified(desk, form)
    except IdentityUnavailable:
        raise Unavailable("The identity service cannot be asked now; try again.") from None
    if issued is None:
        desk.limit.failed()
        resp.status = 401
        _page(service, resp, form.next, refused=True)
        return
    _begin(service, req, resp, issued, form.next, by_password=not form.token)


async def log_out(service: HasLogin, req: Request, resp: Response) -> None:
    """End the session of the request; a token that the dashboard got from Keystone is revoked."""
    desk = service.desk
    session = desk.sessions.session(req.headers)
    if session is not None:
        desk.ended.add(session.id, session.ends)
        if session.issued and desk.methods.password is not None:
            try:
                await desk.methods.password.revoke(session.token)
            except IdentityUnavailable:
                # The session has ended in any case; the token ends by itself.
                resp.set_header("x-roost-token", "not-revoked")
    for name in (SECURE_COOKIE, COOKIE):
        resp.unset_cookie(name, path="/", same_site="Strict")
    resp.set_header("hx-redirect", LOGIN)
    resp.status = 204


async def _identified(desk: LoginDesk, form: LoginForm) -> IssuedToken | None:
    if form.token:
        identity = await desk.authenticator.identify({"x-auth-token": form.token})
        return None if identity is None else IssuedToken(form.token, identity.user_id, 0.0)
    if desk.methods.password is None or not form.user or not form.password:
        return None
    return await desk.methods.password.issue(
        PasswordCredentials(form.user, form.password, form.user_domain, form.project, form.project_domain)
    )


def _begin(
    service: HasLogin,
    req: Request,
    resp: Response,
    issued: IssuedToken,
    following: str,
    *,
    by_password: bool = False,
) -> None:
    """Set the cookie of a new session, and go to an address of the dashboard."""
    desk = service.desk
    ends = service.clock() + desk.options.session_hours * 3600
    ends = min(ends, issued.ends) if issued.ends else ends
    session = new_session(issued.token, issued.user, ends, issued=by_password)
    # A proxy in front may end TLS: the scheme is the one that the browser uses.
    secure = req.scheme == "https"
    try:
        sealed = desk.seal.seal(session)
    except SessionTooLarge as error:
        raise BadRequest(f"The session does not fit a cookie: {error}") from error
    resp.set_cookie(
        SECURE_COOKIE if secure else COOKIE,
        sealed,
        path="/",
        secure=secure,
        http_only=True,
        same_site="Strict",
    )
    resp.status = 303
    resp.set_header("location", own_address(following))


def own_address(address: str) -> str:
    """Return an address of the dashboard as it is, and the overview instead of any other."""
    parts = urlsplit(address)
    ours = parts.path == ROOT or parts.path.startswith(f"{ROOT}/")
    plain = address.isprintable() and "\\" not in address and "//" not in parts.path
    return address if ours and plain and not parts.scheme and not parts.netloc else ROOT


def _page(
    service: HasLogin, resp: Response, following: str, *, refused: bool = False, spent: bool = False
) -> None:
    methods = service.desk.methods
    resp.content_type = falcon.MEDIA_HTML
    resp.data = login_page(methods, own_address(following), refused=refused, spent=spent).encode()


LOGIN_OPERATIONS: Final = (
    Operation("GET", LOGIN, OPEN, show_login, query=Query(LoginQuery), provides=()),
    FormOperation(
        "POST", LOGIN, OPEN, log_in, body=LoginForm, takes=(), largest_body=LARGEST_FORM, provides=()
    ),
    Operation("POST", LOGOUT, Rule("dashboard:session"), log_out, provides=(), status=204),
)
