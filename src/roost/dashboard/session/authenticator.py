"""The identity of a request to the dashboard: by its session, or by a token in its head."""

import secrets
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie

from roost.dashboard.session.ended import EndedSessions
from roost.dashboard.session.seal import DashboardSession, SessionSeal
from roost.web.auth import NOBODY, Authenticator, Identity
from roost.web.errors import Forbidden

COOKIE = "roost-session"
SECURE_COOKIE = f"__Host-{COOKIE}"
"""Names of the cookie, without and with TLS: browsers take the prefix only over TLS."""

GUARD_HEADER = "x-roost-session"
"""Header with the guard of the session, on requests that change something."""

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class WrongGuard(Forbidden):
    """A request that changes something has not the header of its session: another page has sent it."""

    code = "dashboard.wrong_session_header"


class SessionAuthenticator:
    """Finds the identity of a request by the token in its session, or in ``X-Auth-Token``.

    ``assets``: the prefix of paths that need no identity. ``clock``: seconds since the epoch.
    """

    challenge = None

    def __init__(
        self,
        inner: Authenticator,
        seal: SessionSeal,
        ended: EndedSessions,
        clock: Callable[[], float],
        assets: str,
    ) -> None:
        self._inner = inner
        self._seal = seal
        self._ended = ended
        self._clock = clock
        self._assets = assets

    async def identify(
        self, headers: Mapping[str, str], method: str = "GET", path: str = "/"
    ) -> Identity | None:
        """See `Authenticator`. Raises `WrongGuard`."""
        if path.startswith(self._assets):
            return NOBODY
        session = self.session(headers)
        if session is None:
            # The token alone is handed on: the authenticator for development believes further headers.
            token = headers.get("x-auth-token")
            return None if token is None else await self._inner.identify({"x-auth-token": token})
        if method not in SAFE_METHODS and not secrets.compare_digest(
            headers.get(GUARD_HEADER, "").encode(), session.guard.encode()
        ):
            raise WrongGuard(
                f"A request that changes something needs the header {GUARD_HEADER} of its session: load the "
                "page again."
            )
        return await self._inner.identify({"x-auth-token": session.token})

    def session(self, headers: Mapping[str, str]) -> DashboardSession | None:
        """Return the session of a request; None without one, or if it has ended."""
        for value in cookies_of(headers.get("cookie", "")):
            session = self._seal.open(value)
            if session is not None and session.ends > self._clock() and session.id not in self._ended:
                return session
        return None


def cookies_of(header: str) -> list[str]:
    """Return the values of the session's cookies in the head of a request."""
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(header)
    except CookieError:
        return []
    return [cookies[name].value for name in (SECURE_COOKIE, COOKIE) if name in cookies]
