"""A placement service over HTTP: Roost's own or OpenStack's, at microversion 1.39 or the newest it knows.

A write whose caller names no generation first reads the generation of each provider or consumer concerned, in
one request each, and writes at these. Reads and write are repeated after a conflict with another writer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

import httpx
import msgspec
from msgspec import UNSET

from roost.ledger import Held
from roost.model.allocation import Consumer
from roost.model.assignment import Assignment
from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery
from roost.model.vocabulary import SHARING_TRAIT, is_custom
from roost.placement.client.bodies import (
    FetchedPage,
    are_typed,
    candidates_in,
    inventory_records,
    needs_v1,
    provider_in,
    refused_write,
    v1_bodies,
)
from roost.placement.client.query import beyond_placement, needed_version, query_parameters
from roost.placement.client.retries import never, retry_conflicts
from roost.placement.client.transport import (
    LATEST,
    NO_VERSION,
    OLDEST,
    TYPED,
    UNTYPED,
    OlderService,
    ResponseMoments,
    Transport,
    path_to,
)
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.commands.reshape import NewInventories
from roost.placement.errors import (
    BadRequest,
    Conflict,
    NotFound,
    PlacementError,
)
from roost.placement.interface import AllocationRequest, Provider, ProviderSummary
from roost.process.option_source import Source
from roost.web.auth.credentials import Caller, Credentials
from roost.web.query import LARGEST_PAGE

ANSWER_SECONDS = 60
"""Time limit in seconds for connecting to the service, and between two parts of its answer."""

_V1_ALLOCATIONS = "/v1/allocations"
_V1_CANDIDATES = "/v1/allocation_candidates"
_NO_GROUP = "00000000-0000-0000-0000-000000000000"
"""A group without members, by which the client finds out whether the service knows groups."""

CONSUMERS_AT_ONCE = 50
"""Consumers whose allocations are requested at the same time."""

NODES_AT_ONCE = 100
"""Nodes whose assignments one request reads."""


class HttpPlacement:
    """`roost.placement.interface.Placement` over HTTP. Close it, or use it as an async context manager.

    Args:
        credentials: The root URL of the API, and tokens for it.
        client: The httpx client to send requests with; by default a new one.
    """

    def __init__(self, credentials: Credentials, *, client: httpx.AsyncClient | None = None) -> None:
        self._transport = Transport(Caller(credentials, client or httpx.AsyncClient(timeout=ANSWER_SECONDS)))
        self._knows_groups: list[bool] = []

    @classmethod
    def configured(cls, source: Source) -> "HttpPlacement":
        """Make a client by the options of keystoneauth1 in group ``placement``. Raises `OperatorError`."""
        # Imported only here: its import takes as long as all others together.
        from roost.web.auth.keystone_credentials import read_client_options

        options = read_client_options(source, "placement", "placement")
        client = httpx.AsyncClient(timeout=ANSWER_SECONDS, verify=options.verify)
        return cls(options.credentials, client=client)

    async def __aenter__(self) -> "HttpPlacement":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def noting(self, moments: ResponseMoments) -> "HttpPlacement":
        """Return the same client, which records in ``moments`` the ledger moments of its responses."""
        other = copy(self)
        other._transport = self._transport.noting(moments)
        return other

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def candidates(
        self, query: CandidateQuery, limit: int | None = None
    ) -> tuple[list[AllocationRequest], dict[str, ProviderSummary]]:
        """Read the candidates of a query, ``limit`` at most, and the providers of their trees by uuid.

        Raises `BadRequest` for an unknown class or trait, and for a query that only Roost answers if the
        service is another one.
        """
        beyond = beyond_placement(query)
        if beyond is not None:
            return await self._candidates_of_roost(query, limit, beyond)
        parameters = query_parameters(query)
        if limit is not None:
            parameters.append(("limit", str(limit)))
        needs = needed_version(query)
        return candidates_in(
            await self._transport.call("GET", "/allocation_candidates", params=parameters, needs=needs)
        )

    async def _candidates_of_roost(
        self, query: CandidateQuery, limit: int | None, beyond: str
    ) -> tuple[list[AllocationRequest], dict[str, ProviderSummary]]:
        requests: list[AllocationRequest] = []
        summaries: dict[str, ProviderSummary] = {}
        cursor = None
        while True:
            size = LARGEST_PAGE if limit is None else min(LARGEST_PAGE, limit - len(requests))
            page = await self.candidate_page(query, size, cursor)
            if page is None:
                raise BadRequest(
                    f"The placement service is not Roost: {beyond}. Requests need neither with the option "
                    "[scheduler] numa_model=objects"
                )
            requests += page.requests
            summaries |= page.summaries
            cursor = page.next
            if cursor is None or len(requests) == limit:
                return requests, summaries

    async def candidate_page(
        self, query: CandidateQuery, limit: int, cursor: str | None
    ) -> FetchedPage | None:
        """Read the page of a query's candidates that a cursor names; the first page without a cursor.

        None if the service has no pages, as OpenStack's Placement. Raises: as `candidates`; also
        `PlacementError` with status 410 if the version of the earlier pages cannot be rebuilt.
        """
        parameters = [*query_parameters(query), ("limit", str(limit))]
        if cursor is not None:
            parameters.append(("cursor", cursor))
        try:
            found = await self._transport.call("GET", _V1_CANDIDATES, params=parameters)
        except NotFound:
            return None
        return FetchedPage(*candidates_in(found), found["next"])

    async def ensure_provider(self, uuid: str, name: str, parent: str | None = None) -> Provider:
        found = await self.provider(uuid)
        if found is not None:
            return found
        body = {"uuid": uuid, "name": name, "parent_provider_uuid": parent}
        try:
            return provider_in(await self._transport.call("POST", "/resource_providers", body))
        except PlacementError:
            # Another writer may have created the provider meanwhile; if not, the error is raised.
            found = await self.provider(uuid)
            if found is None:
                raise
            return found

    async def update_provider(self, uuid: str, name: str, parent: str | None) -> None:
        body = {"name": name, "parent_provider_uuid": parent}
        await self._transport.call("PUT", path_to("resource_providers", uuid), body)

    async def delete_provider(self, uuid: str) -> None:
        await self._transport.call("DELETE", path_to("resource_providers", uuid))

    async def provider(self, uuid: str) -> Provider | None:
        try:
            return provider_in(await self._transport.call("GET", path_to("resource_providers", uuid)))
        except NotFound:
            return None

    async def tree(self, uuid: str) -> list[Provider]:
        found = await self._transport.call("GET", "/resource_providers", params=[("in_tree", uuid)])
        return [provider_in(each) for each in found["resource_providers"]]

    async def root(self) -> object:
        """Read the document of versions at the root of the API, which needs no token."""
        return await self._transport.call("GET", "/", needs=NO_VERSION)

    async def hosts(self) -> dict[str, str]:
        """Read the names of all root providers that share nothing with other trees, by uuid."""
        sharing = [("required", SHARING_TRAIT)]
        found = await self._transport.call("GET", "/resource_providers")
        shared = await self._transport.call("GET", "/resource_providers", params=sharing)
        pools = {each["uuid"] for each in shared["resource_providers"]}
        return {
            each["uuid"]: each["name"]
            for each in found["resource_providers"]
            if each["parent_provider_uuid"] is None and each["uuid"] not in pools
        }

    async def provider_roots(self) -> dict[str, str]:
        found = await self._transport.call("GET", "/resource_providers")
        return {each["uuid"]: each["root_provider_uuid"] for each in found["resource_providers"]}

    async def inventories(self, provider: str) -> dict[str, Inventory]:
        found = await self._of(provider, "inventories")
        return msgspec.convert(found["inventories"], dict[str, Inventory])

    async def traits(self, provider: str) -> frozenset[str]:
        return frozenset((await self._of(provider, "traits"))["traits"])

    async def aggregates(self, provider: str) -> frozenset[str]:
        return frozenset((await self._of(provider, "aggregates"))["aggregates"])

    async def providers_in_aggregate(self, aggregate: str) -> frozenset[str]:
        found = await self._transport.call("GET", "/resource_providers", params=[("member_of", aggregate)])
        return frozenset(each["uuid"] for each in found["resource_providers"])

    async def sharing_providers(self, aggregates: Collection[str]) -> list[Provider]:
        params = [("member_of", f"in:{','.join(sorted(aggregates))}"), ("required", SHARING_TRAIT)]
        found = await self._transport.call("GET", "/resource_providers", params=params)
        return sorted(map(provider_in, found["resource_providers"]), key=lambda each: each.uuid)

    async def set_inventories(
        self, provider: str, inventories: Mapping[str, Inventory], generation: int | None = None
    ) -> int:
        return await self._set(
            provider, "inventories", {"inventories": inventory_records(inventories)}, generation
        )

    async def set_traits(self, provider: str, traits: Iterable[str], generation: int | None = None) -> int:
        names = sorted(traits)
        await asyncio.gather(
            *(self._transport.call("PUT", path_to("traits", name)) for name in names if is_custom(name))
        )
        return await self._set(provider, "traits", {"traits": names}, generation)

    async def set_aggregates(
        self, provider: str, aggregates: Iterable[str], generation: int | None = None
    ) -> int:
        return await self._set(provider, "aggregates", {"aggregates": sorted(aggregates)}, generation)

    async def ensure_resource_class(self, name: str) -> None:
        await self._transport.call("PUT", path_to("resource_classes", name))

    async def write_allocations(self, writes: Sequence[ConsumerWrite]) -> None:
        """Write all or nothing.

        Consumer types are written only if every write names one and the service knows them. Server groups,
        their conditions and assignments are left out if the service does not know them: see `group_members`
        and `assignments`.
        """

        async def write_all() -> None:
            if any(map(needs_v1, writes)) and await self.knows_groups():
                await self._post(_V1_ALLOCATIONS, v1_bodies(writes))
                return
            bodies = await self._allocation_bodies(writes)
            await self._post_writes("/allocations", bodies, bodies, writes)

        if writes:
            await self._write_at_present(write_all, (), writes)

    async def reshape(self, inventories: Sequence[NewInventories], writes: Sequence[ConsumerWrite]) -> None:
        """Reshape all or nothing. For consumer types see `write_allocations`."""

        async def reshape_all() -> None:
            bodies = await self._allocation_bodies(writes)
            body = {
                "inventories": {each.provider: await self._inventory_body(each) for each in inventories},
                "allocations": bodies,
            }
            await self._post_writes("/reshaper", body, bodies, writes)

        await self._write_at_present(reshape_all, inventories, writes)

    async def delete_allocations(self, consumers: Sequence[str]) -> None:
        """Send one request for each consumer: a request for several would have to name their generations."""
        await asyncio.gather(*map(self._free, consumers))

    async def allocations_of(self, consumer: str) -> Held | None:
        found = await self._transport.call("GET", path_to("allocations", consumer))
        if not found["allocations"]:
            return None
        owner = Consumer(
            uuid=consumer,
            project_id=found["project_id"],
            user_id=found["user_id"],
            generation=found["consumer_generation"],
            consumer_type=found.get("consumer_type"),
        )
        return Held(owner, {provider: each["resources"] for provider, each in found["allocations"].items()})

    async def holdings(self, consumers: Collection[str]) -> dict[str, Held]:
        names = list(consumers)
        found: dict[str, Held] = {}
        for first in range(0, len(names), CONSUMERS_AT_ONCE):
            some = names[first : first + CONSUMERS_AT_ONCE]
            answers = await asyncio.gather(*map(self.allocations_of, some))
            found.update((name, held) for name, held in zip(some, answers, strict=True) if held is not None)
        return found

    async def announce_word(self, mark: int) -> None:
        try:
            await self._transport.call("PUT", path_to("v1", "word"), {"mark": mark})
        except NotFound:
            # A service without operators' words: no scheduler waits for the announcement.
            return

    async def group_members(self, group: str) -> dict[str, list[str]] | None:
        """Read the members of a server group: consumer -> uuids of its hosts, which are root providers.

        None if the service knows no server groups, as OpenStack's Placement.
        """
        try:
            found = await self._transport.call("GET", path_to("v1", "groups", group))
        except NotFound:
            self._knows_groups[:] = [False]
            return None
        self._knows_groups[:] = [True]
        return msgspec.convert(found["members"], dict[str, list[str]])

    async def assignments(self, nodes: Sequence[str]) -> dict[str, dict[str, Assignment]] | None:
        """Read the assignments on nodes (uuids of root providers): node -> consumer -> assignment.

        None if the service knows no assignments, as OpenStack's Placement.
        """
        if not await self.knows_groups():
            return None
        parts = [nodes[first : first + NODES_AT_ONCE] for first in range(0, len(nodes), NODES_AT_ONCE)]
        answers = await asyncio.gather(*map(self._assignments, parts))
        return {node: assigned for answer in answers for node, assigned in answer.items()}

    async def _assignments(self, nodes: Sequence[str]) -> dict[str, dict[str, Assignment]]:
        found = await self._transport.call("GET", "/v1/assignments", params=[("nodes", ",".join(nodes))])
        return {
            node: msgspec.convert(each["consumers"], dict[str, Assignment])
            for node, each in found["nodes"].items()
        }

    async def knows_groups(self) -> bool:
        """Return whether the service knows server groups and checks their conditions. It is asked once."""
        if not self._knows_groups:
            await self.group_members(_NO_GROUP)
        return self._knows_groups == [True]

    async def consumers_on(self, provider: str) -> frozenset[str]:
        """Read the consumers with allocations on a provider. Raises `NotFound`."""
        return frozenset((await self._of(provider, "allocations"))["allocations"])

    async def _free(self, consumer: str) -> None:
        try:
            await self._transport.call("DELETE", path_to("allocations", consumer))
        except NotFound:
            return

    async def _write_at_present(
        self,
        write: Callable[[], Awaitable[None]],
        inventories: Sequence[NewInventories],
        writes: Sequence[ConsumerWrite],
    ) -> None:
        """Write at the present generations where the caller names none; repeat if only these have changed.

        Raises: `ConcurrentUpdate` at once if a generation that the caller named is not the present one.
        """

        async def is_outdated() -> bool:
            for new in inventories:
                if new.generation is not None and await self._generation(new.provider) != new.generation:
                    return True
            for each in writes:
                if each.generation is not UNSET:
                    held = await self.allocations_of(each.consumer)
                    if each.generation != (held.consumer.generation if held else None):
                        return True
            return False

        unchecked = any(new.generation is None for new in inventories) or any(
            each.generation is UNSET for each in writes
        )
        await retry_conflicts(write, is_outdated) if unchecked else await write()

    async def _post_writes(
        self, path: str, body: object, bodies: dict[str, Any], writes: Sequence[ConsumerWrite]
    ) -> None:
        """Send a body; ``bodies`` are the parts of it that belong to the writes."""
        if are_typed(writes):
            try:
                await self._post(path, body, needs=TYPED)
                return
            except OlderService:
                for each in bodies.values():
                    del each["consumer_type"]
        await self._post(path, body, UNTYPED)

    async def _post(self, path: str, body: object, version: str = LATEST, needs: str = OLDEST) -> None:
        try:
            await self._transport.call("POST", path, body, version=version, needs=needs)
        except Conflict as error:
            raise refused_write(error) from error

    async def _allocation_bodies(self, writes: Sequence[ConsumerWrite]) -> dict[str, Any]:
        bodies = {}
        typed = are_typed(writes)
        for write in writes:
            generation = write.generation
            if generation is UNSET:
                held = await self.allocations_of(write.consumer)
                generation = held.consumer.generation if held else None
            bodies[write.consumer] = {
                "allocations": {name: {"resources": each} for name, each in write.allocations.items()},
                "project_id": write.project_id,
                "user_id": write.user_id,
                "consumer_generation": generation,
                **({"consumer_type": write.consumer_type} if typed else {}),
                **({"mappings": write.mappings} if write.mappings else {}),
            }
        return bodies

    async def _inventory_body(self, new: NewInventories) -> dict[str, Any]:
        generation = new.generation
        if generation is None:
            generation = await self._generation(new.provider)
        return {"inventories": inventory_records(new.inventories), "resource_provider_generation": generation}

    async def _generation(self, provider: str) -> int:
        generation: int = (await self._of(provider, "aggregates"))["resource_provider_generation"]
        return generation

    async def _of(self, provider: str, what: str) -> dict[str, Any]:
        found: dict[str, Any] = await self._transport.call(
            "GET", path_to("resource_providers", provider, what)
        )
        return found

    async def _set(self, provider: str, what: str, body: dict[str, Any], generation: int | None) -> int:
        """Set inventories, traits or aggregates at a generation or the present one. Returns the new one.

        ``what``: which of them, as the last segment of the URL.
        """

        async def put(at: int) -> int:
            path = path_to("resource_providers", provider, what)
            answer = await self._transport.call("PUT", path, {**body, "resource_provider_generation": at})
            new: int = answer["resource_provider_generation"]
            return new

        async def put_at_present() -> int:
            return await put(await self._generation(provider))

        if generation is not None:
            return await put(generation)
        return await retry_conflicts(put_at_present, never)
