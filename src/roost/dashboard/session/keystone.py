"""Login by name and password at Keystone, and the end of the tokens that it issued.

keystoneauth1 is synchronous, so it runs in a lane. Its import is slow: other modules import this one only if
Keystone is configured.
"""

from collections.abc import Callable
from typing import TypeVar

from keystoneauth1 import exceptions
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session

from roost.dashboard.session.login_methods import IssuedToken, PasswordCredentials
from roost.model.errors import OperatorError
from roost.process.lane import CallTimedOut, Lane
from roost.process.option_source import Source
from roost.web.auth import IdentityUnavailable
from roost.web.auth.token_check import GROUP, known_options

T = TypeVar("T")

ANSWER_SECONDS = 30.0
"""Seconds that Keystone may take for a login or a revocation."""

_REFUSED = (exceptions.Unauthorized, exceptions.BadRequest, exceptions.Forbidden, exceptions.NotFound)


class KeystonePasswords:
    """Gets and revokes tokens at the Keystone of ``[keystone_authtoken]``: at its ``auth_url``, with its
    settings of TLS.

    Raises `OperatorError`: there is no such URL.
    """

    def __init__(self, source: Source) -> None:
        conf = source.open()
        source.register(conf, known_options(conf, source))
        section = conf[conf[GROUP].auth_section or GROUP]
        url = getattr(section, "auth_url", None) or conf[GROUP].www_authenticate_uri
        if not url:
            raise OperatorError(f"[{GROUP}] has no auth_url: users cannot log in with a password")
        self._url = url.rstrip("/") if url.rstrip("/").endswith("/v3") else f"{url.rstrip('/')}/v3"
        own = conf[GROUP]
        certificate = (own.certfile, own.keyfile) if own.certfile and own.keyfile else own.certfile
        self._session = Session(
            verify=False if own.insecure else own.cafile or True, cert=certificate, timeout=ANSWER_SECONDS
        )
        self._lane = Lane("dashboard login")

    async def issue(self, credentials: PasswordCredentials) -> IssuedToken | None:
        """See `PasswordLogin`."""
        return await self._call(lambda: self._issued(credentials))

    async def revoke(self, token: str) -> None:
        """See `PasswordLogin`."""
        await self._call(lambda: self._revoked(token))

    async def _call(self, call: Callable[[], T]) -> T:
        try:
            return await self._lane.run(call, 2 * ANSWER_SECONDS)
        except (exceptions.ClientException, CallTimedOut) as error:
            raise IdentityUnavailable(f"Keystone does not answer: {error}") from error

    def _issued(self, credentials: PasswordCredentials) -> IssuedToken | None:
        project = credentials.project or None
        plugin = Password(
            self._url,
            username=credentials.user,
            password=credentials.password,
            user_domain_name=credentials.user_domain,
            project_name=project,
            project_domain_name=project and credentials.project_domain,
        )
        try:
            access = plugin.get_access(self._session)
        except _REFUSED:
            return None
        token, ends = access.auth_token, access.expires
        if token is None or ends is None:
            return None
        return IssuedToken(token, access.username or credentials.user, ends.timestamp())

    def _revoked(self, token: str) -> None:
        # A token that has ended by itself is no error.
        own = {"X-Auth-Token": token, "X-Subject-Token": token}
        try:
            self._session.delete(f"{self._url}/auth/tokens", headers=own, authenticated=False)
        except (exceptions.Unauthorized, exceptions.NotFound):
            return
