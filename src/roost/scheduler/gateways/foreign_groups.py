"""Server groups at a placement service without groups, such as OpenStack's: check, claim, check again.

Such a service judges no condition together with the claim. So each run reads the members before it decides,
and again after each claim. A claim stays only if the second look finds the condition met; of two runs that
look after both have claimed, neither can miss the other. The run whose consumer has the higher uuid frees its
claim and takes the next host. The other one waits until that has happened, and gives up after `PATIENCE`
seconds: then the member is not another run's but a placed one.

The first look is a hint only. A claim that it finds may be one that its own second look gives up a moment
later. So the second look of an affinity group wants no member on any other host, even if the first look found
members on the claimed one. A group on several hosts therefore takes no further member.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from roost.model.allocation import AFFINITY, ANTI_AFFINITY
from roost.model.spec import ServerGroup
from roost.model.vocabulary import SHARING_TRAIT
from roost.placement.errors import NotFound
from roost.scheduler.gateways.recording_placement import RunPlacement
from roost.scheduler.selection.claim_result import translated

Members = Callable[[str], Awaitable[Sequence[str]]]
"""Returns the consumers that are members of a group (its uuid), placed or about to be."""

PATIENCE = 2.0
"""Seconds that a run waits for another one to free its claim."""

PAUSE = 0.1
"""Seconds between two looks."""

COLLIDED = "another member of the server group claimed a host at the same time"
"""The reason of a claim that did not stay."""

Sleep = Callable[[float], Awaitable[None]]
"""Waits for some seconds."""

_AT_ONCE = 16
"""Consumers whose allocations are read at the same time."""


async def no_members(group: str) -> Sequence[str]:
    """Return no members: only the hosts in the spec are known."""
    return ()


class ForeignGroup:
    """One server group during one run. ``members`` returns its members, read anew each time."""

    def __init__(
        self, placement: RunPlacement, group: ServerGroup, members: Members, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._placement = placement
        self._group = group
        self._members = members
        self._sleep = sleep
        self._root_of: dict[str, str | None] = {}

    async def claims(self) -> Mapping[str, Sequence[str]]:
        """Return the hosts of each member with a claim, as uuids of root providers: the first look."""
        return await self._claims(await self._members(self._group.uuid))

    async def stays(self, consumer: str, host: str, held_by: str | None = None) -> bool:
        """Return whether the claim of a consumer on a host may stay: the second look.

        If not, the caller must free the claim. ``host``: the root provider. ``held_by``: a consumer that
        holds another host for this one, and is no other member.
        """
        own = frozenset((consumer,) if held_by is None else (consumer, held_by))
        if self._group.policy == ANTI_AFFINITY:
            most = self._group.max_server_per_host - 1
            return await self._settle(consumer, most, lambda: self._others_on(own, host))
        if self._group.policy == AFFINITY:
            return await self._settle(consumer, 0, lambda: self._others_elsewhere(own, host))
        return True

    async def _settle(self, consumer: str, most: int, look: Callable[[], Awaitable[frozenset[str]]]) -> bool:
        for _ in range(max(1, round(PATIENCE / PAUSE))):
            others = await look()
            if len(others) <= most:
                return True
            if sum(other < consumer for other in others) > most:
                return False
            await self._sleep(PAUSE)
        return False

    async def _others_on(self, own: frozenset[str], host: str) -> frozenset[str]:
        """Return the other members on a host."""
        members = frozenset(await self._members(self._group.uuid)) - own
        if not members:
            return frozenset()
        tree = await self._placement.tree(host)
        on = await asyncio.gather(*(self._consumers_on(each.uuid) for each in tree))
        return members & frozenset[str]().union(*on)

    async def _consumers_on(self, provider: str) -> frozenset[str]:
        try:
            return await self._placement.consumers_on(provider)
        except NotFound:
            return frozenset()  # The provider is gone since the tree was read, so nothing is claimed on it.

    async def _others_elsewhere(self, own: frozenset[str], host: str) -> frozenset[str]:
        """Return the other members on any other host."""
        others = [each for each in await self._members(self._group.uuid) if each not in own]
        claims = await self._claims(others)
        return frozenset(member for member, hosts in claims.items() if set(hosts) - {host})

    async def _claims(self, members: Collection[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        names = sorted(members)
        for first in range(0, len(names), _AT_ONCE):
            some = names[first : first + _AT_ONCE]
            holdings = await asyncio.gather(*map(self._placement.allocations_of, some))
            for member, held in zip(some, holdings, strict=True):
                if held is not None:
                    hosts = [await self._root(provider) for provider in sorted(held.allocations)]
                    found[member] = sorted({host for host in hosts if host is not None})
        return found

    async def _root(self, uuid: str) -> str | None:
        """Return the host that a provider belongs to; None for a sharing provider, and for a deleted one."""
        if uuid not in self._root_of:
            self._root_of[uuid] = await self._root_now(uuid)
        return self._root_of[uuid]

    async def _root_now(self, uuid: str) -> str | None:
        provider = await self._placement.provider(uuid)
        if provider is None:
            return None
        try:
            shares = SHARING_TRAIT in await self._placement.traits(uuid)
        except NotFound:
            return None
        return None if shares else provider.root


async def look_for_members(
    placement: RunPlacement, group: ServerGroup | None, members: Members, sleep: Sleep
) -> tuple[Mapping[str, Sequence[str]] | None, ForeignGroup | None]:
    """Return the hosts of each member of a request's server group, as far as placement knows them.

    The second value is the group itself if placement cannot judge its condition: then each claim needs a
    second look.

    Raises:
        PlacementUnavailable, PlacementRefused: as `roost.scheduler.selection.claim_result.translated`.
    """
    if group is None:
        return None, None
    claims = await translated(placement.group_members(group.uuid))
    if claims is not None:
        return claims, None
    foreign = ForeignGroup(placement, group, members, sleep)
    return await translated(foreign.claims()), foreign
