"""Scenarios: a request on supposed hosts.

Hosts are drained and added on a private copy of the fleet and the node table.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from roost.fleet import Fleet
from roost.fleet.hardware.host_topology import UnreadableTopology, decoded
from roost.model.change import (
    AggregatesChanged,
    Change,
    InventoryChanged,
    ProviderChanged,
    ProviderFacts,
    TraitsChanged,
)
from roost.model.node import NodeReport
from roost.model.node_event import MembershipsSet
from roost.model.spec import RequestSpec
from roost.model.what_if import MoreHosts, Scenario
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions

_UNUSED_CELL: dict[str, Any] = {"pinned_cpus": [], "cpu_usage": 0, "memory_usage": 0}
_UNUSED_PAGES: dict[str, Any] = {"used": 0}
_MEMBERS = "nova_object.data"


class Supposition(msgspec.Struct, frozen=True):
    """A request, of which up to ``limit`` instances are placed in a scenario.

    ``now``: seconds since the epoch.
    """

    spec: RequestSpec
    options: SchedulerOptions
    limit: int
    now: float
    scenario: Scenario = Scenario()


def drained_nodes(table: NodeTable, scenario: Scenario) -> tuple[str, ...]:
    """Return the uuids of the nodes that a scenario drains. Raises `BadRequestSpec` for an unknown name."""
    return tuple(
        dict.fromkeys(table.nodes[index] for name in scenario.drained for index in _named(table, name))
    )


def check(table: NodeTable, scenario: Scenario) -> None:
    """Check the names of a scenario. Raises `BadRequestSpec` for an unknown name."""
    drained_nodes(table, scenario)
    for more in scenario.added:
        _like(table, more.like)


def add_hosts(fleet: Fleet, table: NodeTable, more: MoreHosts) -> None:
    """Add hosts that are copies of an existing one, without its use.

    Each has a provider tree of its own with the same inventories, traits and aggregates, is in the same host
    aggregates, and sends the same report; of PCI devices it reports those that are free on the original.

    Raises: `BadRequestSpec` if there is no such host, or placement does not know it.
    """
    index = _like(table, more.like)
    node = table.nodes[index]
    if node not in fleet:
        raise BadRequestSpec(f"no host can be like {more.like!r}: placement has no provider for it")
    tree = fleet.subtree(fleet.row(node))
    seen = table.last_seen.item(table.service.item(index))
    report = _unused(replace(table.report(index), last_seen=seen))
    nodename = table.nodenames[index]
    groups = tuple(each.uuid for each in table.aggregates(index))
    reports: list[NodeReport] = []
    number = 0
    while len(reports) < more.number:
        number += 1
        if not _is_free(fleet, table, report.host, nodename, tree, number):
            continue
        for change in _copies(fleet, tree, number):
            fleet.apply(change)
        name = f"{report.host}+{number}"
        own = _uuid(node, number)
        other = "" if nodename == report.host else f"{nodename}+{number}"
        reports.append(replace(report, node=own, host=name, nodename=other))
        if groups:
            table.apply_to_aggregates(MembershipsSet(own, groups))
    table.update(reports)


def drain(table: NodeTable, nodes: Sequence[str]) -> None:
    """Remove nodes from the choice. Their trees stay, with their allocations."""
    table.remove(nodes)


def _is_free(fleet: Fleet, table: NodeTable, host: str, nodename: str, tree: list[int], number: int) -> bool:
    """Return whether no host, node or provider has the names with this number."""
    names = (f"{host}+{number}", f"{nodename}+{number}")
    if any(table.indexes_of_host(name) or table.indexes_of_nodename(name) for name in names):
        return False
    return not any(
        _uuid(fleet.uuid(row), number) in fleet or fleet.row_named(f"{fleet.name(row)}+{number}") is not None
        for row in tree
    )


def _copies(fleet: Fleet, tree: list[int], number: int) -> Iterator[Change]:
    """Yield the changes that make a copy of a tree without its use. Apply each before the next."""
    for row in tree:
        itself, facts = _uuid(fleet.uuid(row), number), fleet.facts(row)
        is_root = row == tree[0]
        parent = None if is_root or facts.parent is None else _uuid(facts.parent, number)
        made = ProviderFacts(f"{facts.name}+{number}", parent, 0)
        yield ProviderChanged(itself, fleet.free_row(), None, made)
        if inventories := fleet.inventories(row):
            yield InventoryChanged(itself, {}, inventories)
        if traits := fleet.traits_of(row):
            yield TraitsChanged(itself, (), traits)
        if aggregates := fleet.aggregates_of(row):
            yield AggregatesChanged(itself, (), aggregates)


def _uuid(original: str, number: int) -> str:
    return str(uuid.uuid5(uuid.UUID(original), f"+{number}"))


def _named(table: NodeTable, name: str) -> Sequence[int]:
    found = [*table.indexes_of_host(name)] or [*table.indexes_of_nodename(name)]
    if not found and (index := table.index_of_node(name)) is not None:
        found = [index]
    if not found:
        raise BadRequestSpec(f"host {name!r} is unknown")
    return found


def _like(table: NodeTable, name: str) -> int:
    index = table.index(name)
    return _named(table, name)[0] if index is None else index


def _unused(report: NodeReport) -> NodeReport:
    """Return a report as of a host without instances."""
    ram, disk = report.free_ram_mb, report.free_disk_mb
    if ram is not None and report.memory_mb is not None:
        ram = report.memory_mb - report.reserved_memory_mb
    if disk is not None and report.disk_gb is not None:
        disk = (report.disk_gb - report.reserved_disk_gb) * 1024
    numa = report.numa_topology
    return replace(
        report,
        instances={},
        num_instances=0,
        num_io_ops=0,
        failed_builds=0,
        vcpus_used=None if report.vcpus_used is None else 0,
        free_ram_mb=ram,
        free_disk_mb=disk,
        numa_topology=None if numa is None else _unused_topology(numa),
    )


def _unused_topology(reported: dict[str, object]) -> dict[str, object]:
    try:
        decoded(reported)
    except UnreadableTopology:
        # An unreadable topology counts as none, on this host and on its copies.
        return reported
    topology = _members(reported)
    cells = [_with_members(each, _unused_cell(_members(each))) for each in topology.get("cells", ())]
    return _with_members(reported, {**topology, "cells": cells})


def _unused_cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    pages = [_with_members(each, {**_members(each), **_UNUSED_PAGES}) for each in cell.get("mempages", ())]
    return {**cell, **_UNUSED_CELL, "mempages": pages}


def _members(reported: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the members of an object, without the envelope of a serialised one."""
    members: Mapping[str, Any] = reported.get(_MEMBERS, reported)
    return members


def _with_members(reported: Mapping[str, Any], members: dict[str, Any]) -> dict[str, Any]:
    return {**reported, _MEMBERS: members} if _MEMBERS in reported else members
