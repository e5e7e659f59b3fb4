"""Placement and the scheduler of the simulated world: real commands on a real fleet in memory."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, TypeVar

import msgspec
import numpy as np

from roost.agent.protocol.types import MovedClaim, ProviderRefusal, TreeClaim
from roost.agent.protocol.types import SetInventories as AgentsSetInventories
from roost.fleet import Fleet
from roost.ledger import Command, Held, State
from roost.model.change import AllocationsChanged, ResourceClassChanged, TraitChanged
from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery, RequestGroup
from roost.model.spec import Destination, Selection
from roost.model.vocabulary import DISABLED_TRAIT
from roost.placement.commands.allocations import ConsumerWrite, FreeConsumers, WriteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.providers import CreateProvider
from roost.placement.commands.reshape import NewInventories, Reshape
from roost.placement.commands.traits_and_aggregates import SetTraits
from roost.placement.errors import ConcurrentUpdate, PlacementError
from roost.placement.service import PlacementService
from roost.scheduler.errors import NoAlternate, NoValidHost
from roost.scheduler.gateways.local import Decide, UseAlternate
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugins import Plugins
from roost.scheduler.request.places import RequestedPlace, ignored, places_of, target_of
from roost.scheduler.request.scheduling_request import HostRequest, PlacementQueries, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.replacement import AlternateRequest, Replacement, ReplacementRequest
from support.clouds import NOW, report
from support.simulation.hosts import VCPUS

T = TypeVar("T")

FOREIGN = "foreign-consumer"
"""A consumer that others have made: nobody of this world may touch it."""

OPERATORS = "CUSTOM_OPERATORS"
"""A trait that an operator has given to each host."""

_OPTIONS = SchedulerOptions(host_subset_size=8, service_down_time=1e9)


class SimulatedPlacement:
    """The fleet of the world, one VCPU for each instance, and the decisions on it.

    ``compares``: whether the generations of consumers are compared, as placement must.

    ``emptied``: the consumers that have been emptied so far.
    """

    def __init__(self, random: Random, compares: bool = True) -> None:
        self.random = random
        self._compares = compares
        self.state = State(Fleet(), {}, 0.0)
        self.table = NodeTable()
        self.pools = HostPools(self.table, plugins=Plugins((), ()))
        self.emptied: list[str] = []
        self.runs = 0
        self.state.apply(ResourceClassChanged("VCPU", None, 0))
        self.state.apply(TraitChanged(DISABLED_TRAIT, None, 0))
        self.service = PlacementService(_Ledger(self))  # type: ignore[arg-type]

    def add_host(self, host: str, node: str, cell: str, vcpus: int) -> None:
        """Add a host as an earlier run of its agent left it; an operator has added a provider and a trait."""
        self.run(CreateProvider(node, host, None))
        self.run(SetInventories(node, {"VCPU": Inventory(vcpus)}, None))
        self.run(SetTraits(node, frozenset({OPERATORS}), None, add_custom=True))
        self.run(CreateProvider(f"{node}-nic", f"{host}-nic", node))
        self.table.update([report(host, node, cell=cell)])

    def add_foreign(self, node: str) -> None:
        """Add a consumer of others."""
        self.run(
            WriteAllocations(
                (
                    ConsumerWrite(
                        consumer=FOREIGN,
                        allocations={node: {"VCPU": 1}},
                        project_id="others",
                        user_id="others",
                        consumer_type="VOLUME",
                    ),
                )
            )
        )

    def block(self, keep: str) -> list[str]:
        """Take all room of all nodes but one; returns the consumers that have it."""
        blocked = []
        for node in self.table.nodes:
            held = [each.allocations.get(node, {}) for each in self.consumers().values()]
            left = VCPUS - sum(each.get("VCPU", 0) for each in held)
            if node and node != keep and left > 0:
                blocked.append(f"blocker-of-{node}")
                write = ConsumerWrite(
                    consumer=blocked[-1],
                    allocations={node: {"VCPU": left}},
                    project_id="others",
                    user_id="others",
                )
                self.run(WriteAllocations((write,)))
        return blocked

    def tree(self, node: str) -> dict[str, str | None]:
        """The parent of each provider of a host, by name."""
        fleet = self.state.fleet
        rows = fleet.subtree(fleet.row(node))
        names = {fleet.uuid(row): fleet.facts(row).name for row in rows}
        return {fleet.facts(row).name: names.get(fleet.facts(row).parent or "") for row in rows}

    def claims(self, root: str) -> dict[str, TreeClaim]:
        """The claims on the tree of a root."""
        fleet = self.state.fleet
        tree = {fleet.uuid(row) for row in fleet.subtree(fleet.row(root))}
        return {
            uuid: TreeClaim(
                allocations=held.allocations,
                generation=held.consumer.generation,
                project_id=held.consumer.project_id,
                user_id=held.consumer.user_id,
                consumer_type=held.consumer.consumer_type,
            )
            for uuid, held in self.consumers().items()
            if not tree.isdisjoint(held.allocations)
        }

    def reshape(
        self, inventories: Sequence[AgentsSetInventories], claims: Mapping[str, MovedClaim]
    ) -> ProviderRefusal | None:
        """Change inventories and move claims, all or nothing; returns why not."""
        new = [NewInventories(each.uuid, each.inventories, each.generation) for each in inventories]
        held = self.consumers()
        if gone := sorted(claims.keys() - held.keys()):
            return ProviderRefusal(f"{gone[0]} holds nothing", conflict=True)
        writes = [
            ConsumerWrite(
                consumer=uuid,
                allocations=claim.allocations,
                project_id=held[uuid].consumer.project_id,
                user_id=held[uuid].consumer.user_id,
                generation=claim.generation,
            )
            for uuid, claim in claims.items()
        ]
        try:
            self.run(Reshape(tuple(new), tuple(writes)))
        except PlacementError as error:
            return ProviderRefusal(str(error), isinstance(error, ConcurrentUpdate))
        return None

    def root(self, provider: str) -> str:
        """The root of a provider's tree."""
        fleet = self.state.fleet
        return fleet.uuid(fleet.root.item(fleet.row(provider)))

    def cpus(self, node: str) -> set[str]:
        """The names of the providers of a host that have CPUs."""
        fleet = self.state.fleet
        rows = fleet.subtree(fleet.row(node))
        return {fleet.facts(row).name for row in rows if "VCPU" in fleet.inventories(row)}

    def traits(self, node: str) -> set[str]:
        """The traits of a provider."""
        return {*self.state.fleet.traits_of(self.state.fleet.row(node))}

    def run(self, command: Command[T]) -> T:
        """Run a command; nothing is changed if it raises."""
        self.state.name(command.consumers())
        try:
            result = command.run(self.state)
        except Exception:
            self.state.take_back(0)
            raise
        for change in self.state.changes:
            if isinstance(change, AllocationsChanged) and change.after is None:
                self.emptied.append(change.consumer)
        self.state.changes.clear()
        return result

    def held(self, consumer: str) -> Held | None:
        """What a consumer holds."""
        return self.consumers().get(consumer)

    def consumers(self) -> dict[str, Held]:
        """All consumers, with what they hold."""
        return self.state._held

    def consumers_on(self, provider: str) -> frozenset[str]:
        """The consumers with allocations from a provider."""
        return frozenset(uuid for uuid, held in self.consumers().items() if provider in held.allocations)

    # What the scheduler is asked

    def select(self, request: HostRequest) -> tuple[Destination, ...]:
        """Choose and claim hosts. Raises `NoValidHost`, `ConcurrentUpdate`."""
        asked, instances, generations = self._request(request), request.instances, request.generations
        if not self._compares:
            held = {each: self.held(each) for each in instances}
            generations = {each: there.consumer.generation for each, there in held.items() if there}
        asked = msgspec.structs.replace(asked, generations=dict(generations))
        outcome = self.run(Decide(asked, self.pools)).outcome
        # That a node counts an instance matters to filters alone, and there are none.
        self.table.release(*instances)
        if not outcome.destinations:
            raise NoValidHost(asked.run, outcome.refusal or "", outcome.steps, outcome.tries)
        return tuple(
            msgspec.structs.replace(each, selected=self._with_generation(each.instance, each.selected))
            for each in outcome.destinations
        )

    def use_alternate(self, request: AlternateRequest) -> Replacement:
        """Swap a claim to an alternate. Raises `NoAlternate`, `NothingClaimed`, `StaleClaim`."""
        instance = request.instance
        asked = self._request(HostRequest(request.spec, (instance,)))
        if not self._compares and self.held(instance):
            failed = self._with_generation(instance, request.failed)
            request = msgspec.structs.replace(request, failed=failed)
        found = self.run(UseAlternate(ReplacementRequest.of(request, asked), self.pools))
        if found.selected is None:
            raise NoAlternate(found.tries)
        return msgspec.structs.replace(found, selected=self._with_generation(instance, found.selected))

    def write(self, writes: Sequence[ConsumerWrite]) -> None:
        """Write allocations. Raises `PlacementError`."""
        if not self._compares:
            writes = [
                msgspec.structs.replace(each, generation=self._generation(each.consumer)) for each in writes
            ]
        self.run(WriteAllocations(tuple(writes)))

    def free(self, consumers: Sequence[str]) -> None:
        """Delete allocations, whatever their generation."""
        self.run(FreeConsumers(tuple(consumers)))

    def _with_generation(self, consumer: str, selection: Selection) -> Selection:
        values: dict[str, Any] = {"generation": self._generation(consumer)}
        return msgspec.structs.replace(selection, **values)

    def _generation(self, consumer: str) -> int | None:
        held = self.held(consumer)
        return None if held is None else held.consumer.generation

    def _request(self, request: HostRequest) -> SchedulingRequest:
        self.runs += 1
        run, seed = f"run-{self.runs}", self.random.getrandbits(32)
        request = msgspec.structs.replace(request, run=run)
        own = RequestGroup({"VCPU": request.spec.flavor.vcpus})
        query = CandidateQuery((own, *request.spec.requested_resources))
        places = [*ignored(request.spec, self.table), *places_of(request.spec, self.table)]
        named = target_of(request.spec, self.table)
        if named is not None:
            # Placement is asked for this tree alone.
            places.append(RequestedPlace("requested_destination", np.array(named, dtype=np.intp), True))
        return SchedulingRequest.of(
            request, PlacementQueries(query, places=tuple(places)), _OPTIONS, NOW, seed=seed
        )


class _Ledger:
    """What `PlacementService` uses of a ledger."""

    def __init__(self, placement: SimulatedPlacement) -> None:
        self._placement = placement

    async def execute(self, command: Command[T]) -> T:
        return self._placement.run(command)

    async def current(self) -> Fleet:
        return self._placement.state.fleet
