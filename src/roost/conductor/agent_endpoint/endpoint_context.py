"""The context of a cell's endpoint: a process with a relay to placement and the owners of names."""

from collections.abc import Callable
from typing import Any, Protocol

from roost.conductor.agent_endpoint.name_owners import NameOwners
from roost.conductor.agent_endpoint.relay import ProviderRelay
from roost.process.asyncio_context import AsyncioContext, Transactor
from roost.process.context import Context


class EndpointContext(Context, Protocol):
    """A context with the services of an endpoint."""

    @property
    def providers(self) -> ProviderRelay:
        """The providers in placement."""

    @property
    def names(self) -> NameOwners:
        """The owners of names in all cells."""


class AsyncioEndpointContext(AsyncioContext):
    """The context of an endpoint in a process. ``options``: those of `AsyncioContext`."""

    def __init__(
        self,
        database: Callable[[str], Transactor],
        providers: ProviderRelay,
        names: NameOwners,
        **options: Any,
    ) -> None:
        super().__init__(database, **options)
        self.providers = providers
        self.names = names
