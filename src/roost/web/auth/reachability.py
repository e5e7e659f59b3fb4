"""A check that Keystone can be reached, without a token. Importing keystoneauth1 here is slow."""

import asyncio

from keystoneauth1 import exceptions, loading
from keystoneauth1.session import Session

from roost.model.errors import OperatorError
from roost.process.option_source import Source
from roost.web.auth.identity import IdentityUnavailable
from roost.web.auth.token_check import GROUP, known_options

_SERVER_ERRORS = 500
"""Least HTTP status that means that Keystone cannot work. With a lower one, even of a refusal, it works."""


class Reachability:
    """Asks Keystone for its versions, at the URL of ``[keystone_authtoken]``."""

    def __init__(self, source: Source, seconds: float) -> None:
        """Read the options. ``seconds``: time limit to connect, and to answer. Raises `OperatorError`."""
        conf = source.open()
        source.register(conf, known_options(conf, source))
        middleware = conf[GROUP]
        plugin = conf[middleware.auth_section or GROUP]
        url = next(filter(None, (plugin[name] for name in ("auth_url", "endpoint") if name in plugin)), None)
        if url is None:
            raise OperatorError(f"[{middleware.auth_section or GROUP}] has no auth_url")
        self._url: str = url
        self._session: Session = loading.session.Session().load_from_options(
            insecure=middleware.insecure,
            cacert=middleware.cafile,
            cert=middleware.certfile,
            key=middleware.keyfile,
            timeout=seconds,
        )

    async def ask(self) -> None:
        """Ask for the versions. Raises `IdentityUnavailable`."""
        await asyncio.to_thread(self._ask)

    def _ask(self) -> None:
        try:
            status = self._session.get(self._url, authenticated=False, raise_exc=False).status_code
        except exceptions.ClientException as error:
            raise IdentityUnavailable(f"Keystone cannot be reached: {error}") from error
        if status >= _SERVER_ERRORS:
            raise IdentityUnavailable(f"Keystone cannot work: {self._url} answers {status}")
