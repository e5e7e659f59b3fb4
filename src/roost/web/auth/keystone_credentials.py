"""Credentials by keystoneauth1, which gets tokens and reads the catalogue of services.

Its sessions are synchronous, so they run in a lane, and the end of the program does not wait for a Keystone
that does not answer. They only get tokens: an asynchronous HTTP client sends the requests to the service. The
import of keystoneauth1 is slow, so other modules import this one only if it is configured.
"""

import asyncio
import ssl
import time
from typing import NamedTuple

from keystoneauth1 import exceptions, loading
from keystoneauth1.adapter import Adapter
from keystoneauth1.identity.base import BaseIdentityPlugin
from oslo_config import cfg

from roost.model.errors import OperatorError
from roost.process.lane import Lane
from roost.process.option_source import Source
from roost.web.auth.credentials import Access, Credentials
from roost.web.auth.identity import IdentityUnavailable

RENEWED_BEFORE = 120
"""Seconds before its expiry at which a token is renewed, as in keystoneauth1."""

SHORTEST_USE = 5
"""Least seconds for which a token is used, however soon it expires by this machine's clock."""

ANSWER_SECONDS = 30
"""Seconds that Keystone may take for an answer if the option ``timeout`` is not set."""

_INTERFACES = ["internal", "public"]


class KeystoneCredentials:
    """Credentials by a plugin of keystoneauth1.

    A token is kept until shortly before it expires or a service refuses it. Requests that find no valid token
    wait for one renewal together.
    """

    def __init__(self, adapter: Adapter) -> None:
        """Use an adapter, which has the plugin, its session, and the name of the service in the catalogue."""
        assert adapter.auth is not None
        self._adapter = adapter
        self._plugin = adapter.auth
        self._access: Access | None = None
        self._valid_until = 0.0
        self._fetching: asyncio.Task[Access] | None = None
        self._lane = Lane("keystone")

    async def access(self) -> Access:
        if self._access is not None and time.monotonic() < self._valid_until:
            return self._access
        return await self._fetched(new=False)

    async def renew(self, refused: Access) -> Access:
        if self._fetching is not None:
            await asyncio.wait([self._fetching])
        if self._access is not None and self._access != refused:
            return self._access
        return await self._fetched(new=True)

    async def _fetched(self, new: bool) -> Access:
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._fetch(new))
            # The waiting requests get the error of the task, but none may be left to retrieve it.
            self._fetching.add_done_callback(lambda task: task.cancelled() or task.exception())
        # Shielded, because other requests may wait for the token when this one is cancelled.
        return await asyncio.shield(self._fetching)

    async def _fetch(self, new: bool) -> Access:
        try:
            access, seconds = await self._lane.run(lambda: self._ask(new))
        except exceptions.ClientException as error:
            raise IdentityUnavailable(f"no token or no endpoint for this service: {error}") from error
        finally:
            self._fetching = None
        self._access, self._valid_until = access, time.monotonic() + seconds
        return access

    def _ask(self, new: bool) -> tuple[Access, float]:
        """Ask Keystone, which blocks. Returns the access and the seconds for which it may be used."""
        plugin, session = self._plugin, self._adapter.session
        if new:
            plugin.invalidate()
        token = plugin.get_token(session)
        url = self._adapter.get_endpoint()
        if url is None:
            raise exceptions.EndpointNotFound(f"the catalogue has no {self._adapter.service_type}")
        seconds = float("inf")
        expires = plugin.get_access(session).expires if isinstance(plugin, BaseIdentityPlugin) else None
        if expires is not None:
            seconds = max(SHORTEST_USE, expires.timestamp() - RENEWED_BEFORE - time.time())
        return Access(url, token), seconds


class ClientOptions(NamedTuple):
    """The credentials and the TLS settings for one service.

    ``verify``: False to accept any certificate, or the context with the trusted ones.
    """

    credentials: Credentials
    verify: bool | ssl.SSLContext


def read_client_options(source: Source, group: str, service_type: str) -> ClientOptions:
    """Read the options of keystoneauth1 in a group, such as ``auth_type``, ``auth_url`` and ``cafile``.

    With ``auth_type = admin_token`` they are ``endpoint`` and ``token``, with ``none`` only ``endpoint``.

    Raises:
        OperatorError: The options are not complete, or a value is wrong.
    """
    conf = source.open()
    for options in (
        loading.get_auth_common_conf_options(),
        loading.get_session_conf_options(),
        loading.get_adapter_conf_options(include_deprecated=False),
    ):
        source.register(conf, {group: options})
    conf.set_default("timeout", ANSWER_SECONDS, group)
    conf.set_default("service_type", service_type, group)
    conf.set_default("valid_interfaces", _INTERFACES, group)
    section = conf[group].auth_section or group
    if section != group:
        source.register(conf, {section: loading.get_auth_common_conf_options()})
    try:
        if (kind := conf[section].auth_type) is None:
            raise OperatorError(
                f"[{section}] has no auth_type: set auth_type, auth_url, username, password, project_name, "
                "user_domain_name and project_domain_name there; or auth_type = admin_token, endpoint, token"
            )
        plugin_options = loading.get_auth_plugin_conf_options(loading.get_plugin_loader(kind))
        source.register(conf, {section: plugin_options})
        plugin = loading.load_auth_from_conf_options(conf, group)
        session = loading.load_session_from_conf_options(conf, group, auth=plugin)
        adapter = loading.load_adapter_from_conf_options(conf, group, session=session, auth=plugin)
        return ClientOptions(KeystoneCredentials(adapter), _verify(conf[group]))
    except (exceptions.ClientException, cfg.Error, OSError, ValueError) as error:
        raise OperatorError(f"[{section}]: {error}") from error


def client_options(source: Source, group: str) -> list[cfg.Opt]:
    """Return the options that `read_client_options` reads in a group, with those of its plugin if known."""
    conf = source.open()
    common = loading.get_auth_common_conf_options()
    source.register(conf, {group: common})
    found = [
        *common,
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(include_deprecated=False),
    ]
    kind = conf[group].auth_type
    if kind is not None:
        try:
            found += loading.get_auth_plugin_conf_options(loading.get_plugin_loader(kind))
        except exceptions.NoMatchingPlugin:
            return found
    return found


def _verify(options: cfg.ConfigOpts.GroupAttr) -> bool | ssl.SSLContext:
    if options.insecure and not options.certfile:
        return False
    context = ssl.create_default_context(cafile=options.cafile)
    if options.certfile:
        context.load_cert_chain(options.certfile, options.keyfile)
    if options.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
