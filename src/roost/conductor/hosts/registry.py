"""Changes of hosts, with the rules that need several databases and placement."""

import time
from collections.abc import Callable, Mapping, Sequence

from roost.conductor.hosts.host_removal import HostRemoval
from roost.conductor.hosts.lookup import HostLookup, Located
from roost.conductor.hosts.names import NodeOwners, check_names
from roost.conductor.hosts.watch import ServiceWatch
from roost.conductor.words.words import Words
from roost.model.instance import Requester
from roost.model.operator_word import Subject
from roost.model.token import new_host_token, token_digest
from roost.placement.interface import Placement, Provider
from roost.state.api_database.cell_mappings import CELL0
from roost.state.api_database.drains import DrainWord, find_drain_word
from roost.state.api_database.host_mappings import (
    CellUnavailable,
    HostElsewhere,
    NoSuchHost,
    NoSuchNode,
    cells_of_hosts,
    map_hosts,
    remap_host,
    unmap_host,
)
from roost.state.api_database.node_names import release_names
from roost.state.api_database.open_cells import ask_cell
from roost.state.cell_database import Cell
from roost.state.cell_database.departures import DrainProgress, describe_drain
from roost.state.cell_database.host_admission import accept_held_host, issue_token
from roost.state.cell_database.hosts import (
    CellNode,
    add_host_rows,
    describe_hosts,
    nodes_of_host,
)
from roost.storage import Database
from roost.web.errors import Conflict


class HostRegistry:
    """The hosts of all cells. Raises `StorageError` if a database that is needed cannot be used.

    ``clock``: seconds since the epoch.
    """

    def __init__(
        self,
        api: Database,
        cells: Mapping[str, Cell],
        placement: Placement,
        watch: ServiceWatch,
        words: Words,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.lookup = HostLookup(api, cells, words)
        self._words = words
        self._api = api
        self._cells = cells
        self._owners = NodeOwners(api, placement)
        self._removal = HostRemoval(placement, watch, words, clock)
        self._clock = clock

    async def add(self, cell: str, hosts: Sequence[str], by: Requester | None = None) -> dict[str, str]:
        """Add hosts to a cell, all or none; returns their agents' tokens by host. ``by``: the requester.

        Raises:
            NoSuchCell: there is no such cell, or it is cell0.
            HostElsewhere: a host is in another cell.
            Conflict: a host was added before, or another host has a node of its name.
        """
        there = self.lookup.cell(cell)
        if cell == CELL0:
            raise Conflict("cell0 has no hosts: it keeps what could not be placed")
        # After an interrupted addition the hosts are mapped, and the cell has all of them, or none.
        known = await there.read(describe_hosts(tuple(hosts)))
        self._check_new(there, [host for host in hosts if host in known and known[host].added_at is not None])
        await check_names(self._api, list(self._cells.values()), hosts)
        for other in list(self._cells.values()):
            if other is not there:
                elsewhere = await ask_cell(other, describe_hosts(tuple(hosts)))
                for host in elsewhere or ():
                    raise HostElsewhere(f"host {host!r} is in cell {other.name}")
        mapped = await self._api.write(map_hosts(hosts, cell, self._clock(), by))
        for host, name in mapped.items():
            raise HostElsewhere(f"host {host!r} is in cell {name}")
        return await self._enter(there, hosts)

    async def enable(
        self,
        host: str,
        enabled: bool,
        reason: str | None = None,
        cell: str | None = None,
        by: Requester | None = None,
        *,
        moves: bool = False,
        live: bool = False,
    ) -> Located:
        """Enable or disable a host for new instances. Raises as `HostLookup.find`.

        The word counts when this returns: see `roost.conductor.words`. ``by``: the requester. ``moves``: the
        instances of a disabled host are moved away, else they stay. ``live``: while they run, if they can.
        """
        located = await self.lookup.find(host, cell)
        self.lookup.cell(located.cell)
        await self._words.say(Subject(located.cell, host), enabled, reason, by, moves, live)
        return await self.lookup.as_said(located)

    async def progress(
        self, host: str, node: str = "", cell: str | None = None
    ) -> tuple[Subject, DrainWord, DrainProgress]:
        """Return how far a host is emptied, or a node of it.

        Raises `NoSuchNode`, and as `HostLookup.find`.
        """
        if node:
            name, nodes = await self.lookup.nodes(host, cell)
            if node not in {each.node for each in nodes}:
                raise NoSuchNode(f"host {host!r} has no node {node!r}")
        else:
            name = (await self.lookup.find(host, cell)).cell
        subject = Subject(name, host, node)
        word = await self._api.read(find_drain_word(subject))
        return subject, word, await self.lookup.cell(name).read(describe_drain(subject, word.since))

    async def renew_token(
        self, host: str, cell: str | None = None, *, revoke: bool = False
    ) -> tuple[str, str]:
        """Return the cell of a host and a new token; the old tokens end when it is used.

        ``revoke``: the old tokens end now. Raises as `HostLookup.find`.
        """
        there = self.lookup.cell((await self.lookup.find(host, cell)).cell)
        return there.name, await self._issue(there, host, alone=revoke)

    async def accept(self, host: str, cell: str | None = None) -> None:
        """Let a held agent carry out the orders of its cell again. Raises as `HostLookup.find`.

        Raises:
            Conflict: the agent does not wait for that.
        """
        there = self.lookup.cell((await self.lookup.find(host, cell)).cell)
        if not await there.write(accept_held_host(host)):
            raise Conflict(f"the agent of host {host!r} is not held: it does not wait for an operator")

    async def move(self, host: str, to: str, cell: str | None = None, by: Requester | None = None) -> str:
        """Move an empty host to another cell; returns its agent's token there. ``by``: the requester.

        Its agent must have ended. An interrupted move goes on where it stopped. Raises as `remove`.
        """
        target = self.lookup.cell(to)
        if to == CELL0:
            raise Conflict("cell0 has no hosts: it keeps what could not be placed")
        source = await self.lookup.cell_of(host, cell)
        # The target answers now, before the host leaves.
        if host in await target.read(describe_hosts((host,))):
            raise Conflict(f"host {host!r} is in cell {to} already")
        removed = None if source is target else await self._removal.remove(source, host, by=by)
        if removed is None and not await self._api.read(cells_of_hosts((host,))):
            raise NoSuchHost(host)
        mapped = await self._api.write(remap_host(host, source.name, to, self._clock(), by))
        for name in mapped.values():
            raise HostElsewhere(f"host {host!r} is in cell {name}")
        return (await self._enter(target, [host]))[host]

    async def remove(
        self,
        host: str,
        *,
        cell: str | None = None,
        evidence: str | None = None,
        by: Requester | None = None,
    ) -> tuple[str, list[Provider]]:
        """Remove a host from its cell, and its providers; returns the cell and the providers that stay.

        ``evidence``: how it is known that no guest runs on the host any more; then its instances are ended.
        ``by``: the requester.

        A removal that is refused after its beginning leaves the host disabled. An interrupted removal goes on
        where it stopped.

        Raises:
            HostInUse: it has instances, claims or orders, or its agent has come meanwhile.
            HostIsUp: its agent shows signs of life.
        """
        there = await self.lookup.cell_of(host, cell)
        removed = await self._removal.remove(there, host, evidence, by)
        unmap = unmap_host(host, there.name, self._clock(), by, was_there=removed is not None)
        if not await self._api.write(unmap) and removed is None:
            raise NoSuchHost(host)
        return there.name, removed or []

    async def enable_node(
        self,
        host: str,
        node: str,
        enabled: bool,
        reason: str | None = None,
        cell: str | None = None,
        by: Requester | None = None,
        *,
        moves: bool = False,
        live: bool = False,
    ) -> CellNode:
        """Enable or disable a node for new instances. ``moves``, ``live``: as of `enable`.

        Raises `NoSuchNode`, and as `HostLookup.find`. Raises `CellUnavailable`: its cell cannot be asked, and
        the node is not found elsewhere.
        """
        name = (await self.lookup.find(host, cell)).cell
        nodes = await ask_cell(self.lookup.cell(name), nodes_of_host(host))
        found = next((each for each in nodes or () if each.node == node), None)
        if nodes is None and (known := await self._owners.of_host(host, node)) is not None:
            found = CellNode(node, known.nodename, None, None)
        if found is None and nodes is None:
            raise CellUnavailable(f"the database of cell {name} cannot be asked whether it has node {node!r}")
        if found is None:
            raise NoSuchNode(f"host {host!r} has no node {node!r}")
        subject = Subject(name, host, node)
        await self._words.say(subject, enabled, reason, by, moves, live)
        return found.as_said((await self._words.store.of_hosts((host,)))[subject])

    async def remove_node(self, host: str, node: str, cell: str | None = None) -> tuple[str, list[Provider]]:
        """Remove a node of a host that has no instances, with its providers; returns as `remove`.

        An agent that still reports it makes it anew. Raises `NoSuchNode`, `HostInUse`, and as
        `HostLookup.find`.
        """
        name, nodes = await self.lookup.nodes(host, cell)
        if node not in {each.node for each in nodes}:
            # An interrupted removal has not freed the name.
            await self._api.write(release_names(host, name, node))
            raise NoSuchNode(f"host {host!r} has no node {node!r}")
        kept = await self._removal.remove_node(self.lookup.cell(name), host, node)
        await self._api.write(release_names(host, name, node))
        return name, kept

    async def give_up_instance(
        self, cell: str, uuid: str, evidence: str, by: Requester | None = None
    ) -> None:
        """As `HostRemoval.give_up_instance`. Raises `NoSuchCell` too."""
        await self._removal.give_up_instance(self.lookup.cell(cell), uuid, evidence, by)

    async def _enter(self, cell: Cell, hosts: Sequence[str]) -> dict[str, str]:
        tokens = {host: new_host_token() for host in hosts}
        digests = {host: token_digest(token) for host, token in tokens.items()}
        self._check_new(cell, await cell.write(add_host_rows(digests, self._clock())))
        return tokens

    def _check_new(self, cell: Cell, added: Sequence[str]) -> None:
        for host in added:
            raise Conflict(
                f"host {host!r} is in cell {cell.name} already; POST /v1/hosts/{host}/token makes a new token"
            )

    async def _issue(self, cell: Cell, host: str, *, alone: bool = False) -> str:
        token = new_host_token()
        work = issue_token(host=host, digest=token_digest(token), at=self._clock(), alone=alone)
        await cell.write(work)
        return token
