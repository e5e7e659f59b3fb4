"""The scheduler and placement, as conductors of the simulated world ask them."""

from typing import Any

import httpx

from roost.agent.protocol.errors import EndpointUnavailable
from roost.conductor.agent_endpoint.relay import ProviderRelay, ReadTreeClaims, RelayReshape
from roost.conductor.questions import (
    AllocationsOf,
    ClaimAlternate,
    ConsumersOn,
    FreeClaims,
    ProviderRoots,
    SelectDestinations,
    TraitsOf,
    TreeOf,
    WriteConsumers,
)
from roost.scheduler.errors import PlacementUnavailable
from roost.storage import OutcomeUnknown
from support.simulation.agents import at_once
from support.simulation.placement import SimulatedPlacement
from support.simulation.process import Process


class SchedulerService:
    """The scheduler.

    What comes twice is a claim, that a proxy in front of placement sends to a second server. Placement takes
    that for a new claim if the consumer has come and gone before: its API has no guard against that, and only
    a comparison of all consumers with all instances finds it: the audit, with which a world repeats claims.
    """

    patience = 30.0
    local = False
    repeats_late = False

    def __init__(self, placement: SimulatedPlacement) -> None:
        self._placement = placement

    def handle(self, asker: Process, question: Any) -> Any:
        """Answer at once. Raises what a scheduler raises."""
        match question:
            case SelectDestinations(request):
                return self._placement.select(request)
            case ClaimAlternate():
                return self._placement.use_alternate(
                    question.spec, question.instance, question.failed, question.alternates
                )
        raise AssertionError(f"a scheduler is not asked for {question!r}")

    def unreachable(self, unknown: bool) -> Exception:
        """A scheduler in the process has a ledger whose answer is lost, one over HTTP a placement."""
        if unknown and self._placement.random.random() < 0.5:
            return OutcomeUnknown("the ledger's database did not answer")
        return PlacementUnavailable("placement cannot be reached")


class PlacementService:
    """Placement over HTTP."""

    patience = 30.0
    local = False
    repeats_late = True

    def __init__(self, placement: SimulatedPlacement) -> None:
        self._placement = placement

    def handle(self, asker: Process, question: Any) -> Any:
        """Answer at once. Raises `PlacementError`."""
        match question:
            case AllocationsOf(consumers):
                found = {each: self._placement.held(each) for each in consumers}
                return {each: held for each, held in found.items() if held is not None}
            case WriteConsumers(writes):
                return self._placement.write(writes)
            case FreeClaims(consumers):
                return self._placement.free(consumers)
            case ProviderRoots():
                return at_once(self._placement.service.provider_roots())
            case TreeOf(provider):
                return at_once(self._placement.service.tree(provider))
            case ConsumersOn(provider):
                return self._placement.consumers_on(provider)
            case TraitsOf(provider):
                return at_once(self._placement.service.traits(provider))
        raise AssertionError(f"placement is not asked for {question!r}")

    def unreachable(self, unknown: bool) -> Exception:
        """An error of the transport."""
        return httpx.ReadTimeout("no answer") if unknown else httpx.ConnectError("no connection")


class ProvidersService:
    """The relay to placement of an endpoint."""

    patience = 30.0
    local = False
    repeats_late = True

    def __init__(self, placement: SimulatedPlacement) -> None:
        self._placement = placement
        self._relay = ProviderRelay(placement.service)

    def handle(self, asker: Process, question: Any) -> Any:
        """Answer at once. Raises `AgentProtocolError`."""
        match question:
            case ReadTreeClaims(root):
                return self._placement.claims(root)
            case RelayReshape(_, inventories, claims):
                for name in sorted({name for each in inventories for name in each.inventories}):
                    if name.startswith("CUSTOM_"):
                        at_once(self._placement.service.ensure_resource_class(name))
                return self._placement.reshape(inventories, claims)
        return at_once(self._relay.ask(question))

    def unreachable(self, unknown: bool) -> Exception:
        """What the relay makes of an error of the transport."""
        return EndpointUnavailable("placement cannot be reached")
