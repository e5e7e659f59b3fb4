"""Server groups on a placement service that knows none, such as OpenStack's: check, claim, check again.

Nothing there judges a condition together with the claim. So each run looks for the members before it decides,
and again after each claim. A claim stays only if the second look finds the condition met; of two runs that
look after both have claimed, neither can miss the other. The run whose consumer has the higher uuid frees its
claim and takes the next host. The other one waits until that has happened, and gives up after `PATIENCE`
seconds: then it is not another run but a placed member that is there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from roost.model.allocation import AFFINITY, ANTI_AFFINITY
from roost.model.spec import ServerGroup
from roost.model.vocabulary import SHARING_TRAIT
from roost.placement.client import HttpPlacement

Members = Callable[[str], Awaitable[Sequence[str]]]
"""The consumers that are members of a group (its uuid), placed or about to be."""

PATIENCE = 2.0
"""Seconds that a run waits for another one to free its claim."""

PAUSE = 0.1
"""Seconds between two looks."""


async def no_members(group: str) -> Sequence[str]:
    """No members are known beside the hosts that the spec names."""
    return ()


class ForeignGroup:
    """One server group during one run. ``members`` tells who is in it, each time anew."""

    def __init__(
        self,
        placement: HttpPlacement,
        group: ServerGroup,
        members: Members,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._placement = placement
        self._group = group
        self._members = members
        self._sleep = sleep
        self._root_of: dict[str, str | None] = {}
        self._known: frozenset[str] = frozenset()

    async def claims(self) -> Mapping[str, Sequence[str]]:
        """The first look: the hosts of each member that has a claim, as uuids of root providers."""
        found = await self._claims(await self._members(self._group.uuid))
        self._known = frozenset(host for hosts in found.values() for host in hosts)
        return found

    async def stays(self, consumer: str, host: str) -> bool:
        """The second look: whether the claim of a consumer on a host may stay. ``host``: the root provider.

        If not, the caller must free the claim.
        """
        if self._group.policy == ANTI_AFFINITY:
            return await self._settle(consumer, lambda: self._others_on(consumer, host))
        if self._group.policy == AFFINITY and host not in self._known:
            return await self._settle(consumer, lambda: self._others_elsewhere(consumer, host))
        return True

    async def _settle(self, consumer: str, look: Callable[[], Awaitable[frozenset[str]]]) -> bool:
        most = self._group.max_server_per_host - 1 if self._group.policy == ANTI_AFFINITY else 0
        for _ in range(max(1, round(PATIENCE / PAUSE))):
            others = await look()
            if len(others) <= most:
                return True
            if sum(other < consumer for other in others) > most:
                return False
            await self._sleep(PAUSE)
        return False

    async def _others_on(self, consumer: str, host: str) -> frozenset[str]:
        """The other members on a host."""
        members = frozenset(await self._members(self._group.uuid)) - {consumer}
        if not members:
            return frozenset()
        tree = await self._placement.tree(host)
        on = await asyncio.gather(*(self._placement.consumers_on(each.uuid) for each in tree))
        return members & frozenset[str]().union(*on)

    async def _others_elsewhere(self, consumer: str, host: str) -> frozenset[str]:
        """The other members on any other host."""
        others = [each for each in await self._members(self._group.uuid) if each != consumer]
        claims = await self._claims(others)
        return frozenset(member for member, hosts in claims.items() if set(hosts) - {host})

    async def _claims(self, members: Iterable[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for member in members:
            held = await self._placement.allocations_of(member)
            if held is not None:
                hosts = [await self._root(provider) for provider in sorted(held.allocations)]
                found[member] = sorted({host for host in hosts if host is not None})
        return found

    async def _root(self, uuid: str) -> str | None:
        """The host that a provider belongs to; None for a sharing provider, and for one that is gone."""
        if uuid not in self._root_of:
            provider = await self._placement.provider(uuid)
            shares = provider is not None and SHARING_TRAIT in await self._placement.traits(uuid)
            self._root_of[uuid] = None if provider is None or shares else provider.root
        return self._root_of[uuid]
