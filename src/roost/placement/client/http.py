"""A placement service over HTTP: Roost's own or OpenStack's, at microversion 1.39 or the newest it knows."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Self

import httpx
import msgspec
from msgspec.structs import replace

from roost.ledger import Held
from roost.model.assignment import Assignment
from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery
from roost.model.vocabulary import SHARING_TRAIT, is_custom
from roost.placement.client.bodies import (
    FetchedPage,
    candidates_in,
    inventory_records,
    needs_v1,
    provider_in,
)
from roost.placement.client.query import beyond_placement, needed_version, query_parameters
from roost.placement.client.transport import NO_VERSION, ResponseMoments, Transport, path_to
from roost.placement.client.writes import read_claims, read_part, reshape, write_claims, write_part
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.commands.reshape import NewInventories
from roost.placement.errors import (
    BadRequest,
    NotFound,
    PlacementError,
)
from roost.placement.interface import AllocationRequest, Provider, ProviderSummary
from roost.process.option_source import Source
from roost.web.auth.credentials import Caller, Credentials
from roost.web.client_transport import http_client
from roost.web.query import LARGEST_PAGE

ANSWER_SECONDS = 60
"""Time limit in seconds for connecting to the service, and between two parts of its answer."""

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
        self._transport = Transport(Caller(credentials, client or http_client(ANSWER_SECONDS)))
        self._knows_groups: list[bool] = []

    @classmethod
    def configured(cls, source: Source) -> Self:
        """Make a client by the options of keystoneauth1 in group ``placement``. Raises `OperatorError`."""
        # Imported only here: its import takes as long as all others together.
        from roost.web.auth.keystone_credentials import read_client_options

        options = read_client_options(source, "placement", "placement")
        client = http_client(ANSWER_SECONDS, options.verify)
        return cls(options.credentials, client=client)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def noting(self, moments: ResponseMoments) -> Self:
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
        path = "/allocation_candidates"
        found: FetchedPage = await self._transport.call(
            "GET", path, params=parameters, needs=needs, decode=candidates_in
        )
        return found.requests, found.summaries

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
            found: FetchedPage = await self._transport.call(
                "GET", _V1_CANDIDATES, params=parameters, decode=candidates_in
            )
        except NotFound:
            return None
        return found

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
        return await write_part(
            self._transport, provider, "inventories", inventory_records(inventories), generation
        )

    async def set_traits(self, provider: str, traits: Iterable[str], generation: int | None = None) -> int:
        names = sorted(traits)
        await asyncio.gather(
            *(self._transport.call("PUT", path_to("traits", name)) for name in names if is_custom(name))
        )
        return await write_part(self._transport, provider, "traits", names, generation)

    async def set_aggregates(
        self, provider: str, aggregates: Iterable[str], generation: int | None = None
    ) -> int:
        return await write_part(self._transport, provider, "aggregates", sorted(aggregates), generation)

    async def ensure_resource_class(self, name: str) -> None:
        await self._transport.call("PUT", path_to("resource_classes", name))

    async def write_allocations(self, writes: Sequence[ConsumerWrite]) -> None:
        """Write all or nothing.

        Consumer types are written only if every write names one and the service knows them. Server groups,
        their conditions and assignments are left out if the service does not know them: see `group_members`
        and `assignments`.
        """
        if writes:
            by_v1 = any(map(needs_v1, writes)) and await self.knows_groups()
            await write_claims(self._transport, writes, by_v1=by_v1)

    async def reshape(self, inventories: Sequence[NewInventories], writes: Sequence[ConsumerWrite]) -> None:
        """Reshape all or nothing. For consumer types see `write_allocations`."""
        await reshape(self._transport, inventories, writes)

    async def delete_allocations(self, consumers: Sequence[str]) -> None:
        """Send one request for each consumer: a request for several would have to name their generations."""
        await asyncio.gather(*map(self._free, consumers))

    async def allocations_of(self, consumer: str) -> Held | None:
        return await read_claims(self._transport, consumer)

    async def holdings(self, consumers: Collection[str]) -> dict[str, Held]:
        names = list(consumers)
        found: dict[str, Held] = {}
        for first in range(0, len(names), CONSUMERS_AT_ONCE):
            some = names[first : first + CONSUMERS_AT_ONCE]
            answers = await asyncio.gather(*map(self.allocations_of, some))
            found.update((name, held) for name, held in zip(some, answers, strict=True) if held is not None)
        nodes = sorted({provider for held in found.values() for provider in held.allocations})
        for assigned in (await self.assignments(nodes) or {}).values() if nodes else ():
            for name in assigned.keys() & found.keys():
                owner = replace(found[name].consumer, assignment=assigned[name])
                found[name] = Held(owner, found[name].allocations)
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

    async def _of(self, provider: str, part: str) -> dict[str, Any]:
        return await read_part(self._transport, provider, part)
