"""Another service whose API speaks JSON, such as Neutron or Cyborg."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import httpx
import msgspec
from oslo_config import cfg

from roost.model.text import fault_of
from roost.process.option_source import Source
from roost.web.auth.credentials import Caller
from roost.web.auth.identity import IdentityUnavailable

_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


ANSWER_SECONDS: Final = 60
"""Time limit in seconds for connecting to a service, and between two parts of its answer."""


class ServiceAway(Exception):
    """A service does not answer, or its answer is malformed; the text says which."""


class ServiceRefused(Exception):
    """A service refuses a request.

    ``status``: of HTTP. ``kind``: the service's name for the error, empty if it gives none.
    """

    def __init__(self, text: str, status: int, kind: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.kind = kind


class JsonService:
    """The API of one service. ``name``: its name in errors."""

    def __init__(self, name: str, caller: Caller) -> None:
        self._name = name
        self._caller = caller

    @classmethod
    def configured(cls, source: Source, group: str, service_type: str, name: str) -> "JsonService | None":
        """Return the service that a group of the configuration describes by keystoneauth1's options.

        None if the group has no ``auth_type``. Raises `OperatorError`.
        """
        conf = source.open()
        source.register(conf, {group: [cfg.StrOpt("auth_type"), cfg.StrOpt("auth_section")]})
        if conf[group].auth_type is None and conf[group].auth_section is None:
            return None
        # Imported only here: its import takes as long as all others together.
        from roost.web.auth.keystone_credentials import read_client_options

        options = read_client_options(source, group, service_type)
        client = httpx.AsyncClient(timeout=ANSWER_SECONDS, verify=options.verify)
        return cls(name, Caller(options.credentials, client))

    async def close(self) -> None:
        """Close all connections."""
        await self._caller.close()

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        revision: int | None = None,
    ) -> Any:
        """Send a request. Returns the decoded body of the response, None if it has none.

        ``revision``: the revision number that the resource must have, for services that have them.

        Raises `ServiceAway`, `ServiceRefused`.
        """
        headers = {"accept": "application/json", "content-type": "application/json"}
        if revision is not None:
            headers["if-match"] = f"revision_number={revision}"
        target = f"{path}?{urlencode(query)}" if query else path
        content = None if body is None else msgspec.json.encode(body)
        try:
            response = await self._caller.send(method, target, headers, content)
        except (httpx.HTTPError, httpx.InvalidURL, IdentityUnavailable) as error:
            raise ServiceAway(f"{self._name} does not answer: {fault_of(error)}") from error
        status = response.status_code
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _PASSING:
            raise ServiceAway(f"{self._name} answers {status} to {method} {path}")
        try:
            answer = msgspec.json.decode(response.content) if response.content.strip() else None
        except _NOT_JSON as error:
            if status < HTTPStatus.MULTIPLE_CHOICES:
                raise ServiceAway(f"{self._name} answers {method} {path} by no JSON") from error
            answer = None
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            kind, text = _error_in(answer)
            raise ServiceRefused(f"{self._name}: {text or f'{status} to {method} {path}'}", status, kind)
        return answer


def _error_in(answer: object) -> tuple[str, str]:
    """Return the type and the text of an error, in the forms of Neutron, of Cyborg, and of other services."""
    if not isinstance(answer, dict):
        return "", ""
    neutron = answer.get("NeutronError")
    if isinstance(neutron, dict):
        return str(neutron.get("type", "")), str(neutron.get("message", ""))
    errors = answer.get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        return str(errors[0].get("code", "")), str(errors[0].get("detail", ""))
    return "", str(answer.get("faultstring") or answer.get("error_message") or "")
