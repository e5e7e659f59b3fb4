"""The scheduler and placement, as conductors of the simulated world call them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import httpx

from roost.agent.protocol.errors import EndpointUnavailable
from roost.agent.protocol.types import MovedClaim, ProviderRefusal, SetInventories, TreeClaim
from roost.conductor.agent_endpoint.relay import ProviderRelay
from roost.ledger import Held
from roost.model.spec import Destination
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.interface import Provider
from roost.scheduler.errors import PlacementUnavailable
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.replacement import AlternateRequest, Replacement
from roost.storage import OutcomeUnknown
from support.simulation.agents import at_once
from support.simulation.placement import SimulatedPlacement
from support.simulation.process import Process, ServiceCall


class CalledService:
    """A service whose methods answer at once, and raise what the service raises."""

    patience = 30.0
    local = False
    repeats_late = True

    def __init__(self, placement: SimulatedPlacement) -> None:
        self._placement = placement

    def handle(self, asker: Process, call: ServiceCall) -> Any:
        """Answer a call."""
        return getattr(self, call.method)(*call.arguments, **call.named)


class SchedulerService(CalledService):
    """The scheduler.

    What comes twice is a claim, that a proxy in front of placement sends to a second server. Placement takes
    that for a new claim if the consumer has come and gone before: its API has no guard against that, and only
    a comparison of all consumers with all instances finds it: the audit, with which a world repeats claims.
    """

    repeats_late = False

    def select_destinations(self, request: HostRequest) -> tuple[Destination, ...]:
        return self._placement.select(request)

    def use_alternate(self, request: AlternateRequest) -> Replacement:
        return self._placement.use_alternate(request)

    def unreachable(self, unknown: bool) -> Exception:
        """A scheduler in the process has a ledger whose answer is lost, one over HTTP a placement."""
        if unknown and self._placement.random.random() < 0.5:
            return OutcomeUnknown("the ledger's database did not answer")
        return PlacementUnavailable("placement cannot be reached")


class PlacementService(CalledService):
    """Placement over HTTP."""

    def holdings(self, consumers: Collection[str]) -> dict[str, Held]:
        found = {each: self._placement.held(each) for each in consumers}
        return {each: held for each, held in found.items() if held is not None}

    def write_allocations(self, writes: Sequence[ConsumerWrite]) -> None:
        self._placement.write(writes)

    def delete_allocations(self, consumers: Collection[str]) -> None:
        self._placement.free(consumers)

    def provider_roots(self) -> dict[str, str]:
        return at_once(self._placement.service.provider_roots())

    def tree(self, uuid: str) -> list[Provider]:
        return at_once(self._placement.service.tree(uuid))

    def consumers_on(self, provider: str) -> frozenset[str]:
        return self._placement.consumers_on(provider)

    def traits(self, provider: str) -> frozenset[str]:
        return at_once(self._placement.service.traits(provider))

    def unreachable(self, unknown: bool) -> Exception:
        """An error of the transport."""
        return httpx.ReadTimeout("no answer") if unknown else httpx.ConnectError("no connection")


class ProvidersService(CalledService):
    """The relay to placement of an endpoint."""

    def __init__(self, placement: SimulatedPlacement) -> None:
        super().__init__(placement)
        self._relay = ProviderRelay(placement.service)

    def claims(self, root: str) -> dict[str, TreeClaim]:
        return self._placement.claims(root)

    def reshape(
        self, root: str, inventories: Sequence[SetInventories], claims: Mapping[str, MovedClaim]
    ) -> ProviderRefusal | None:
        for name in sorted({name for each in inventories for name in each.inventories}):
            if name.startswith("CUSTOM_"):
                at_once(self._placement.service.ensure_resource_class(name))
        return self._placement.reshape(inventories, claims)

    def __getattr__(self, method: str) -> Any:
        return lambda *arguments: at_once(getattr(self._relay, method)(*arguments))

    def unreachable(self, unknown: bool) -> Exception:
        """What the relay makes of an error of the transport."""
        return EndpointUnavailable("placement cannot be reached")
