"""Repeated reads of services, over connections that stay open."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self, TypeVar

import httpx
import msgspec

from roost.cli.connection import ServiceConnection
from roost.cli.profiles import Service
from roost.cli.top.view import MOST_ANSWER_SECONDS, reason_of
from roost.model.errors import OperatorError

T = TypeVar("T")


class ServiceSilent(Exception):
    """A service does not answer, or not with what was asked for. The text is a sentence that names it."""


class ServiceReader:
    """Reads services by GET. ``connections``: of the services with an address. ``seconds``: for a response.

    A command's client (`roost.cli.service_client`) opens a connection for each request, which takes more
    processor time than all else of a screen that is drawn every other second.
    """

    def __init__(
        self, connections: Mapping[Service, ServiceConnection], seconds: float = MOST_ANSWER_SECONDS
    ) -> None:
        self._connections = connections
        self._seconds = seconds
        self._clients: dict[Service, httpx.Client] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients.values():
            client.close()

    def client(self, service: Service) -> httpx.Client:
        """Return the client of a service. Raises `OperatorError` without a usable token or certificate."""
        if service not in self._clients:
            connection = self._connections[service]
            headers = {**connection.headers(), "accept": "application/json"}
            self._clients[service] = httpx.Client(
                base_url=connection.url, headers=headers, timeout=self._seconds, **connection.way()
            )
        return self._clients[service]

    def read(self, service: Service, path: str, form: type[T], **query: object) -> T:
        """Return the response to a GET. ``query``: parameters; those that are None are left out.

        Raises:
            ServiceSilent: there is none, or it has another form.
        """
        if service not in self._connections:
            raise ServiceSilent(f"the profile has no address of the {service}: set {service} or url in it")
        chosen = {name: str(value) for name, value in query.items() if value is not None}
        try:
            answer = self.client(service).get(path, params=chosen)
            answer.raise_for_status()
            return msgspec.json.decode(answer.content, type=form)
        except (httpx.HTTPError, httpx.InvalidURL, msgspec.MsgspecError, OperatorError) as error:
            place = self._connections[service].place
            raise ServiceSilent(f"the {service} at {place} cannot be read: {reason_of(error)}") from error
