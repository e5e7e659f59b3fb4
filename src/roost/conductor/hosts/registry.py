"""Changes of hosts, with the rules that need several databases and placement."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import structlog

from roost.agents.tokens import new_token
from roost.cells import Cell
from roost.cells.given_up import GiveUpOnHost
from roost.cells.held_hosts import AcceptHost
from roost.cells.host_tokens import IssueToken, RevokeTokens
from roost.cells.hosts import (
    AddHost,
    CellHost,
    CellNode,
    DescribeHosts,
    EnableHost,
    HostsAfter,
    InstancesAt,
    NodesOfHost,
    ProvidersMade,
    RemoveHost,
    RemoveNode,
)
from roost.conductor.asking_cells import ask_cell
from roost.conductor.cell_mappings import CELL0
from roost.conductor.hosts.errors import (
    HostElsewhere,
    HostInUse,
    HostIsUp,
    NoSuchCell,
    NoSuchHost,
    NoSuchNode,
)
from roost.conductor.hosts.mappings import CellsOfHosts, MapHosts, MappedHostsAfter, UnmapHost
from roost.conductor.hosts.providers import remove_providers
from roost.conductor.hosts.watch import DOWN, UP, ServiceWatch
from roost.model.instance import ACTIVE, LOST, STARTING
from roost.model.token import token_digest
from roost.placement.interface import Placement, Provider
from roost.storage import Database
from roost.web.errors import Conflict, NotFound

BEING_REMOVED = "it is being removed"
"""The reason for which a host is disabled while it is removed or moved."""

_ENDED_BY_WORD = (STARTING, ACTIVE, LOST)

_log = structlog.get_logger()


class Located(NamedTuple):
    """A host of a cell; ``described`` is None while the cell cannot be asked."""

    host: str
    cell: str
    described: CellHost | None


class Page(NamedTuple):
    """Hosts in order of names. ``silent``: cells that cannot be asked."""

    hosts: list[Located]
    following: str | None
    silent: list[str]


class Hosts:
    """The hosts of all cells. Raises `StorageError` if a database that is needed cannot be used.

    ``clock``: seconds since the epoch.
    """

    def __init__(
        self,
        api: Database,
        cells: Mapping[str, Cell],
        placement: Placement,
        watch: ServiceWatch,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.watch = watch
        self._api = api
        self._cells = cells
        self._placement = placement
        self._clock = clock

    async def add(self, cell: str, hosts: Sequence[str]) -> dict[str, str]:
        """Add hosts to a cell, all or none; returns the tokens of their agents by host.

        Raises:
            NoSuchCell: there is no such cell, or it is cell0.
            HostElsewhere: a host is in another cell.
            Conflict: a host was added before.
        """
        there = self._cell(cell)
        if cell == CELL0:
            raise Conflict("cell0 has no hosts: it keeps what could not be placed")
        known = await there.read(DescribeHosts(tuple(hosts)))
        for host, described in known.items():
            if described.added_at is not None:
                raise Conflict(
                    f"host {host!r} is in cell {cell} already; a new token is renew-token's to make"
                )
        for other in self._cells.values():
            if other is not there:
                elsewhere = await ask_cell(other, DescribeHosts(tuple(hosts)))
                for host in elsewhere or ():
                    raise HostElsewhere(f"host {host!r} is in cell {other.name}")
        for host, name in (await self._api.write(MapHosts(tuple(hosts), cell))).items():
            raise HostElsewhere(f"host {host!r} is in cell {name}")
        return {host: await self._enter(there, host) for host in hosts}

    async def page(self, limit: int, after: str = "", cell: str | None = None) -> Page:
        """Hosts by page, of all cells or of one. Raises `NoSuchCell`."""
        cells = dict(self._cells) if cell is None else {cell: self._cell(cell)}
        mapped = await self._api.read(MappedHostsAfter(limit + 1, after, cell))
        answers = await asyncio.gather(
            *(ask_cell(each, HostsAfter(limit + 1, after)) for each in cells.values())
        )
        silent = [name for name, answer in zip(cells, answers, strict=True) if answer is None]
        found = {(host, name) for host, name in mapped if name in silent or name not in cells}
        for name, answer in zip(cells, answers, strict=True):
            found.update((host, name) for host in answer or ())
        names = sorted({host for host, _ in found})
        listed = frozenset(names[:limit])
        chosen = sorted(each for each in found if each[0] in listed)
        described = await self._described(chosen, silent)
        following = names[limit - 1] if len(names) > limit else None
        hosts = [Located(host, name, described.get((host, name))) for host, name in chosen]
        return Page(hosts, following, silent)

    async def find(self, host: str, cell: str | None = None) -> Located:
        """A host. Raises `NoSuchHost`, `NoSuchCell`, and `HostElsewhere` if several cells have one."""
        if cell is None:
            cell = (await self._api.read(CellsOfHosts((host,)))).get(host)
        if cell is not None:
            there = self._cell(cell)
            described = await ask_cell(there, DescribeHosts((host,)))
            if described is None:
                return Located(host, cell, None)
            if host not in described:
                raise NoSuchHost(host)
            return Located(host, cell, described[host])
        found = []
        for each in list(self._cells.values()):
            described = await ask_cell(each, DescribeHosts((host,)))
            if described and host in described:
                found.append(Located(host, each.name, described[host]))
        if len(found) > 1:
            names = " and ".join(each.cell for each in found)
            raise HostElsewhere(f"host {host!r} is in cells {names}: name the cell")
        if not found:
            raise NoSuchHost(host)
        return found[0]

    async def enable(
        self, host: str, enabled: bool, reason: str | None = None, cell: str | None = None
    ) -> Located:
        """Let a host have new instances, or not. What is there stays. Raises as `find`."""
        there = self._cell((await self.find(host, cell)).cell)
        await there.write(EnableHost(host, enabled, reason, self._clock()))
        return await self.find(host, there.name)

    async def renew_token(self, host: str, cell: str | None = None) -> tuple[str, str]:
        """The cell of a host and a new token; the old one ends when the new one is used. As `find`."""
        there = self._cell((await self.find(host, cell)).cell)
        return there.name, await self._issue(there, host)

    async def accept(self, host: str, cell: str | None = None) -> None:
        """Have a held agent carry out orders again, as its cell has them. As `find`.

        Raises:
            Conflict: the agent does not wait for that.
        """
        there = self._cell((await self.find(host, cell)).cell)
        if not await there.write(AcceptHost(host)):
            raise Conflict(f"the agent of host {host!r} is not held: it does not wait for an operator")

    async def nodes(self, host: str, cell: str | None = None) -> tuple[str, list[CellNode]]:
        """The cell of a host, and its nodes. Raises as `find`."""
        there = self._cell((await self.find(host, cell)).cell)
        return there.name, await there.read(NodesOfHost(host))

    async def move(self, host: str, to: str, cell: str | None = None) -> str:
        """Move an empty host to another cell; returns its agent's token there.

        Its agent must have ended. Raises as `remove`.
        """
        target = self._cell(to)
        source = (await self.find(host, cell)).cell
        if source == to:
            raise Conflict(f"host {host!r} is in cell {to} already")
        if to == CELL0:
            raise Conflict("cell0 has no hosts: it keeps what could not be placed")
        await target.read(DescribeHosts((host,)))  # It answers now, before the host leaves.
        await self.remove(host, cell=source)
        return (await self.add(to, [host]))[host]

    async def remove(
        self, host: str, *, cell: str | None = None, evidence: str | None = None
    ) -> tuple[str, list[Provider]]:
        """Remove a host from its cell, and its providers; returns the cell and the providers that stay.

        ``evidence``: how it is known that no guest runs on the host any more; then its instances are ended.
        A removal that is refused after its beginning leaves the host disabled.

        Raises:
            HostInUse: it has instances, claims or orders.
            HostIsUp: its agent shows signs of life.
        """
        located = await self.find(host, cell)
        there = self._cell(located.cell)
        described = (await there.read(DescribeHosts((host,)))).get(host)
        if described is None:
            raise NoSuchHost(host)
        self._check_down(there.name, described)
        if evidence is None:
            self._check_empty(described)
        await there.write(EnableHost(host, False, BEING_REMOVED, self._clock()))
        await there.write(RevokeTokens(host))
        if evidence is not None:
            await self.give_up(there, host, evidence)
        if number := await there.read(InstancesAt(host)):
            raise HostInUse(
                f"{number} instances are still on host {host!r}, which is disabled now: repeat the removal "
                "when they are gone"
            )
        kept: list[Provider] = []
        for node in await there.read(NodesOfHost(host)):
            kept += await self._remove_providers(there, node.node)
        if not await there.write(RemoveHost(host)):
            raise HostInUse(f"instances have come to host {host!r} meanwhile; it is disabled now: repeat it")
        await self._api.write(UnmapHost(host, there.name))
        return there.name, kept

    async def remove_node(self, host: str, node: str, cell: str | None = None) -> tuple[str, list[Provider]]:
        """Remove a node of a host that has no instances, with its providers; returns as `remove`.

        An agent that still reports it makes it anew. Raises `NoSuchNode`, `HostInUse`, and as `find`.
        """
        name, nodes = await self.nodes(host, cell)
        there = self._cell(name)
        if node not in {each.node for each in nodes}:
            raise NoSuchNode(f"host {host!r} has no node {node!r}")
        if number := await there.read(InstancesAt(host, node)):
            raise HostInUse(f"node {node} has {number} instances")
        kept = await self._remove_providers(there, node)
        await there.write(RemoveNode(host, node))
        return name, kept

    async def give_up_instance(self, cell: str, uuid: str, evidence: str) -> None:
        """End what one instance has on its host, as an operator knows that no guest of it runs there.

        A start that has not ended fails, and another host is tried. An instance whose guest is gone is in
        error, and its claim is freed.

        Raises:
            NotFound: the cell does not have it.
            Conflict: it is in a state that ends by itself.
            HostIsUp: it starts or runs on a host that shows signs of life.
        """
        there = self._cell(cell)
        instance = (await there.find([uuid])).get(uuid)
        if instance is None:
            raise NotFound(f"cell {cell} does not have instance {uuid}")
        host = instance.host
        if instance.state not in _ENDED_BY_WORD or host is None:
            raise Conflict(
                f"instance {uuid} is {instance.state}: only {', '.join(_ENDED_BY_WORD)} ones are given up"
            )
        if instance.state != LOST:
            described = (await there.read(DescribeHosts((host,)))).get(host)
            if described is not None:
                self._check_down(cell, described)
        await self.give_up(there, host, evidence, only=uuid)

    async def give_up(self, cell: Cell, host: str, evidence: str, only: str | None = None) -> frozenset[str]:
        """End what instances have on a host, as an operator knows that no guest runs there.

        ``only``: of one instance. Returns the uuids of those that were ended.
        """
        work = GiveUpOnHost(host=host, reason=evidence, at=self._clock(), cell=cell.name, only=only)
        done = await cell.write(work)
        cell.keep_ends(done.ended)
        if done.instances:
            values = {"host": host, "cell": cell.name, "instances": sorted(done.instances)}
            _log.warning("an operator has ended instances", **values, evidence=evidence)
        return done.instances

    def _check_empty(self, described: CellHost) -> None:
        host = described.host
        there = {state: number for state, number in described.instances.items() if state != "error"}
        if there:
            counted = ", ".join(f"{number} {state}" for state, number in sorted(there.items()))
            raise HostInUse(f"host {host!r} has instances: {counted}")
        if described.orders:
            raise HostInUse(
                f"host {host!r} has not acknowledged {described.orders} orders to destroy: guests may run "
                "there"
            )

    def _check_down(self, cell: str, described: CellHost) -> None:
        state = self.watch.state_of(cell, described.session)
        if state == UP:
            raise HostIsUp(f"the agent of host {described.host!r} shows signs of life: stop it first")
        if state != DOWN:
            raise HostIsUp(f"cell {cell} was not seen yet by this conductor: try again in some seconds")

    async def _remove_providers(self, cell: Cell, root: str) -> list[Provider]:
        made = await cell.read(ProvidersMade(root))
        return await remove_providers(self._placement, root, made)

    async def _enter(self, cell: Cell, host: str) -> str:
        await cell.write(AddHost(host, self._clock()))
        return await self._issue(cell, host)

    async def _issue(self, cell: Cell, host: str) -> str:
        token = new_token()
        await cell.write(IssueToken(host=host, digest=token_digest(token), at=self._clock()))
        return token

    def _cell(self, name: str) -> Cell:
        cell = self._cells.get(name)
        if cell is None:
            raise NoSuchCell(name)
        return cell

    async def _described(
        self, chosen: Sequence[tuple[str, str]], silent: Sequence[str]
    ) -> dict[tuple[str, str], CellHost]:
        by_cell: dict[str, list[str]] = {}
        for host, name in chosen:
            if name in self._cells and name not in silent:
                by_cell.setdefault(name, []).append(host)
        answers = await asyncio.gather(
            *(ask_cell(self._cells[name], DescribeHosts(tuple(hosts))) for name, hosts in by_cell.items())
        )
        return {
            (host, name): described
            for name, answer in zip(by_cell, answers, strict=True)
            for host, described in (answer or {}).items()
        }
