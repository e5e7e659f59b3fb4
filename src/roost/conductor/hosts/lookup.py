"""Hosts of all cells found and listed, with the words of operators on them."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from roost.conductor.words.words import Words
from roost.model.operator_word import SaidWord, Subject
from roost.state.api_database.host_mappings import (
    HostElsewhere,
    NoSuchCell,
    NoSuchHost,
    cells_of_hosts,
    mapped_hosts_after,
)
from roost.state.api_database.open_cells import ask_cell
from roost.state.cell_database import Cell
from roost.state.cell_database.hosts import (
    CellHost,
    CellNode,
    describe_hosts,
    hosts_after,
    nodes_of_host,
)
from roost.storage import Database


class Located(NamedTuple):
    """A host of a cell. ``described``: None while the cell cannot be asked. ``said``: the last word of an
    operator on it, None without one."""

    host: str
    cell: str
    described: CellHost | None
    said: SaidWord | None = None


class LocatedHosts(NamedTuple):
    """Hosts in order of names. ``following``: the marker of the next page. ``silent``: cells that cannot be
    asked."""

    hosts: list[Located]
    following: str | None
    silent: list[str]


class HostLookup:
    """Finds the hosts of all cells. Raises `StorageError` if a database that is needed cannot be used."""

    def __init__(self, api: Database, cells: Mapping[str, Cell], words: Words) -> None:
        self._words = words
        self._api = api
        self._cells = cells

    async def page(self, limit: int, after: str = "", cell: str | None = None) -> LocatedHosts:
        """Return a page of hosts, of all cells or of one. Raises `NoSuchCell`."""
        cells = dict(self._cells) if cell is None else {cell: self.cell(cell)}
        mapped = await self._api.read(mapped_hosts_after(limit + 1, after, cell))
        answers = await asyncio.gather(
            *(ask_cell(each, hosts_after(limit + 1, after)) for each in cells.values())
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
        said = await self._words.store.of_hosts(names[:limit])
        return LocatedHosts([_as_said(each, said) for each in hosts], following, silent)

    async def find(self, host: str, cell: str | None = None) -> Located:
        """Return a host. Raises `NoSuchHost`, `NoSuchCell`, and `HostElsewhere` if several cells have one."""
        if cell is None:
            cell = (await self._api.read(cells_of_hosts((host,)))).get(host)
        if cell is not None:
            there = self.cell(cell)
            described = await ask_cell(there, describe_hosts((host,)))
            if described is None:
                return Located(host, cell, None)
            if host not in described:
                raise NoSuchHost(host)
            return await self.as_said(Located(host, cell, described[host]))
        found = []
        for each in list(self._cells.values()):
            described = await ask_cell(each, describe_hosts((host,)))
            if described and host in described:
                found.append(Located(host, each.name, described[host]))
        if len(found) > 1:
            names = " and ".join(each.cell for each in found)
            raise HostElsewhere(f"host {host!r} is in cells {names}: name the cell")
        if not found:
            raise NoSuchHost(host)
        return await self.as_said(found[0])

    async def nodes(self, host: str, cell: str | None = None) -> tuple[str, list[CellNode]]:
        """Return the cell of a host, and its nodes. Raises as `find`."""
        there = self.cell((await self.find(host, cell)).cell)
        said = await self._words.store.of_hosts((host,))
        return there.name, [
            each if (word := said.get(Subject(there.name, host, each.node))) is None else each.as_said(word)
            for each in await there.read(nodes_of_host(host))
        ]

    async def cells_of(self, hosts: Sequence[str]) -> dict[str, str]:
        """Return the cells of hosts: those that are mapped, or that have them. Raises `NoSuchHost`."""
        found = await self._api.read(cells_of_hosts(tuple(hosts)))
        rest = tuple(host for host in hosts if host not in found)
        for each in list(self._cells.values()) if rest else ():
            found.update(dict.fromkeys(await ask_cell(each, describe_hosts(rest)) or (), each.name))
        for host in hosts:
            if host not in found:
                raise NoSuchHost(host)
        return found

    def cell(self, name: str) -> Cell:
        """Return an open cell. Raises `NoSuchCell`."""
        cell = self._cells.get(name)
        if cell is None:
            raise NoSuchCell(name)
        return cell

    async def cell_of(self, host: str, cell: str | None) -> Cell:
        """Return the cell of a host: the named, the mapped, or the one that has it. Raises as `find`."""
        if cell is None:
            cell = (await self._api.read(cells_of_hosts((host,)))).get(host)
        return self.cell((await self.find(host)).cell if cell is None else cell)

    async def as_said(self, located: Located) -> Located:
        """Return a host with the last word of an operator on it."""
        return _as_said(located, await self._words.store.of_hosts((located.host,)))

    async def _described(
        self, chosen: Sequence[tuple[str, str]], silent: Sequence[str]
    ) -> dict[tuple[str, str], CellHost]:
        by_cell: dict[str, list[str]] = {}
        for host, name in chosen:
            if name in self._cells and name not in silent:
                by_cell.setdefault(name, []).append(host)
        answers = await asyncio.gather(
            *(ask_cell(self._cells[name], describe_hosts(tuple(hosts))) for name, hosts in by_cell.items())
        )
        return {
            (host, name): described
            for name, answer in zip(by_cell, answers, strict=True)
            for host, described in (answer or {}).items()
        }


def _as_said(located: Located, words: Mapping[Subject, SaidWord]) -> Located:
    """Return a host with an operator's word on it; without a word, the flag of its cell stays."""
    word = words.get(Subject(located.cell, located.host))
    if located.described is None or word is None:
        return located._replace(said=word)
    described = replace(located.described, enabled=word.enabled, reason=word.reason)
    return located._replace(described=described, said=word)
