"""Removes hosts and nodes from cells, with their providers, and ends instances known to be gone."""

from collections.abc import Callable, Collection

import structlog

from roost.conductor.hosts.watch import DOWN, UP, ServiceWatch
from roost.conductor.words.words import Words
from roost.model.instance import LOST, STARTING, WITH_GUEST, Requester
from roost.model.operator_word import Subject
from roost.placement.errors import HasChildren, ProviderInUse
from roost.placement.errors import NotFound as NoSuchProvider
from roost.placement.interface import Placement, Provider
from roost.state.api_database.host_mappings import HostInUse, HostIsUp
from roost.state.cell_database import Cell
from roost.state.cell_database.deletions import give_up_on_host
from roost.state.cell_database.host_admission import revoke_tokens
from roost.state.cell_database.hosts import (
    CellHost,
    count_instances_at,
    describe_hosts,
    nodes_of_host,
    providers_made,
    remove_host_row,
    remove_node_row,
)
from roost.web.errors import Conflict, NotFound

BEING_REMOVED = "it is being removed"
"""The reason with which a host is disabled while it is removed or moved."""

_ENDED_BY_WORD = (STARTING, *WITH_GUEST)

_log = structlog.get_logger()


class HostRemoval:
    """Removes from cells. Each step can be repeated. Raises `StorageError`, and what placement raises."""

    def __init__(
        self, placement: Placement, watch: ServiceWatch, words: Words, clock: Callable[[], float]
    ) -> None:
        self._placement = placement
        self._words = words
        self._watch = watch
        self._clock = clock

    async def remove(
        self, cell: Cell, host: str, evidence: str | None = None, by: Requester | None = None
    ) -> list[Provider] | None:
        """Remove a host from its cell, and its providers.

        Returns the providers that stay, None if the cell does not have the host. ``evidence``: how it is
        known that no guest runs on the host any more; then its agent is locked out first, and its instances
        are ended. Without it the tokens end only with the host: a host that stays keeps them.

        Raises:
            HostInUse: it has instances, claims or orders, or its agent has come meanwhile.
            HostIsUp: its agent shows signs of life.
        """
        described = (await cell.read(describe_hosts((host,)))).get(host)
        if described is None:
            # An interrupted removal has not withdrawn its word.
            await self._words.store.withdraw(cell.name, host)
            return None
        self._check_down(cell.name, described)
        if evidence is None:
            _check_empty(described)
        await self._words.say(Subject(cell.name, host), False, BEING_REMOVED, by)
        if evidence is not None:
            await cell.write(revoke_tokens(host))
            await self._give_up(cell, host, evidence, by)
        if number := await cell.read(count_instances_at(host)):
            raise HostInUse(
                f"{number} instances are still on host {host!r}, which is disabled now: repeat the removal "
                "when they are gone"
            )
        kept: list[Provider] = []
        for node in await cell.read(nodes_of_host(host)):
            kept += await self._remove_providers(cell, node.node)
        if why := await cell.write(remove_host_row(host, described.session)):
            raise HostInUse(f"{why}; host {host!r} is disabled now: repeat it")
        await self._words.store.withdraw(cell.name, host)
        return kept

    async def remove_node(self, cell: Cell, host: str, node: str) -> list[Provider]:
        """Remove a node of a host, with its providers; returns those that stay. Raises `HostInUse`."""
        if number := await cell.read(count_instances_at(host, node)):
            raise HostInUse(f"node {node} has {number} instances")
        kept = await self._remove_providers(cell, node)
        await cell.write(remove_node_row(host, node))
        await self._words.store.withdraw(cell.name, host, node)
        return kept

    async def give_up_instance(
        self, cell: Cell, uuid: str, evidence: str, by: Requester | None = None
    ) -> None:
        """End an instance on its host, of which an operator knows that no guest runs there.

        An attempt that is starting fails, and another host is tried. An instance whose guest is gone is put
        in error, and its claim is freed.

        Raises:
            NotFound: the cell does not have the instance.
            Conflict: it is in a state that ends by itself.
            HostIsUp: it starts or runs on a host that shows signs of life.
        """
        instance = (await cell.find([uuid])).get(uuid)
        if instance is None:
            raise NotFound(f"cell {cell.name} does not have instance {uuid}")
        host = instance.host
        if instance.state not in _ENDED_BY_WORD or host is None:
            raise Conflict(
                f"instance {uuid} is {instance.state}: only {', '.join(_ENDED_BY_WORD)} ones are given up"
            )
        if instance.state != LOST:
            described = (await cell.read(describe_hosts((host,)))).get(host)
            if described is not None:
                self._check_down(cell.name, described)
        await self._give_up(cell, host, evidence, by, only=uuid)

    async def _give_up(
        self, cell: Cell, host: str, evidence: str, by: Requester | None, only: str | None = None
    ) -> None:
        """End the instances on a host, of which an operator knows that no guest runs there.

        ``only``: the uuid of the only instance to end.
        """
        work = give_up_on_host(host=host, reason=evidence, at=self._clock(), cell=cell.name, only=only, by=by)
        done = await cell.write(work)
        cell.keep_ends(done.ended)
        if done.instances:
            values = {"host": host, "cell": cell.name, "instances": sorted(done.instances)}
            _log.warning("an operator has ended instances", **values, evidence=evidence)

    def _check_down(self, cell: str, described: CellHost) -> None:
        state = self._watch.state_of(cell, described.session)
        if state == UP:
            raise HostIsUp(f"the agent of host {described.host!r} shows signs of life: stop it first")
        if state != DOWN:
            raise HostIsUp(f"cell {cell} was not seen yet by this conductor: try again in some seconds")

    async def _remove_providers(self, cell: Cell, root: str) -> list[Provider]:
        made = await cell.read(providers_made(root))
        return await remove_providers(self._placement, root, made)


def _check_empty(described: CellHost) -> None:
    host = described.host
    there = {state: number for state, number in described.instances.items() if state != "error"}
    if there:
        counted = ", ".join(f"{number} {state}" for state, number in sorted(there.items()))
        raise HostInUse(f"host {host!r} has instances: {counted}")
    if described.orders:
        raise HostInUse(
            f"host {host!r} has not acknowledged {described.orders} orders to destroy: guests may run there"
        )


async def remove_providers(placement: Placement, root: str, made: Collection[str]) -> list[Provider]:
    """Delete the providers of a tree that agents have ``made``, children first.

    Returns the providers that stay: those that others made, and all their ancestors.

    Raises:
        HostInUse: instances have claims there; providers that were deleted before stay deleted.
    """
    tree = {provider.uuid: provider for provider in await placement.tree(root)}
    if root in tree and tree[root].root != root:
        # The provider is in another tree now, which is not the node's.
        return [tree[root]]
    staying: list[Provider] = []
    kept: set[str] = set()
    for provider in sorted(tree.values(), key=lambda each: _depth(tree, each), reverse=True):
        if provider.uuid not in made or provider.uuid in kept:
            staying.append(provider)
            kept.add(provider.parent or "")
            continue
        try:
            await placement.delete_provider(provider.uuid)
        except NoSuchProvider:
            continue
        except HasChildren:
            # Another client has made a child meanwhile.
            staying.append(provider)
            kept.add(provider.parent or "")
        except ProviderInUse as error:
            raise HostInUse(
                f"provider {provider.uuid} ({provider.name}) has allocations in placement: delete its "
                "instances, or wait until their claims are freed"
            ) from error
    return staying


def _depth(tree: dict[str, Provider], provider: Provider) -> int:
    depth, parent = 0, provider.parent
    while parent is not None and parent in tree:
        depth, parent = depth + 1, tree[parent].parent
    return depth
