"""The reports of a host's nodes for the scheduler: guests, metrics, NUMA cells, PCI devices; those due."""

import sys
from collections.abc import Collection, Mapping, Sequence

import msgspec

from roost.agent.agent_context import AgentContext
from roost.agent.drivers import Hardware
from roost.agent.troubles import Troubles
from roost.model.assignment import digest
from roost.model.names import provider_uuid
from roost.model.node import (
    KEEPS_DISKS,
    KEEPS_SHELVED,
    LIVE_MOVES,
    RESIZES_IN_PLACE,
    YES,
    NodeInstance,
    NodeReport,
)
from roost.model.text import is_storable
from roost.model.vocabulary import MAX_NAME

_NO_HARDWARE = "the driver cannot tell its hardware"
_NO_NODES = "the driver cannot tell its nodes"
_NO_GUESTS = "the driver cannot list its guests"
_NO_METRICS = "the driver has no metrics"
_LEFT_OUT = "metrics of the driver cannot be reported"


class DriverFacts(msgspec.Struct, frozen=True):
    """The nodes, hardware and metrics of a host, as its driver reports them at one moment.

    ``nodes``: the root of each node by the node's name; None if the driver failed to list them.
    ``disk_store``: guests that move find their disks on the other hosts with the same one; None: on none.
    ``moves_live``: guests can move while they run. ``keeps_shelved``: disks stay in the store when guests are
    destroyed. ``resizes``: a guest of another size is kept.
    """

    nodes: dict[str, str] | None
    hardware: Hardware | None
    metrics: dict[str, float]
    disk_store: str | None = None
    moves_live: bool = False
    keeps_shelved: bool = False
    resizes: bool = False


async def read_facts(context: AgentContext, host: str, troubles: Troubles) -> DriverFacts:
    """Ask the driver. Log and leave out what it fails to report: that must not stop the heartbeat."""
    nodes = await _nodes(context, host, troubles)
    hardware = await _hardware(context, troubles)
    metrics = await _metrics(context, troubles)
    driver = context.driver
    return DriverFacts(
        nodes,
        hardware,
        metrics,
        await driver.disk_store(),
        await driver.moves_live(),
        await driver.keeps_shelved(),
        await driver.resizes_in_place(),
    )


async def read_nodes(context: AgentContext, host: str) -> dict[str, str]:
    """Return the root of each node of a host by the node's name. Raises what the driver raises."""
    nodes = await context.driver.nodes()
    return {host: provider_uuid(host)} if nodes is None else nodes


async def read_guests(context: AgentContext, troubles: Troubles) -> dict[str, int] | None:
    """Return the attempt of each guest that runs on the host; None if the driver cannot list them."""
    try:
        guests = await context.driver.guests()
    except Exception as error:
        troubles.tell(_NO_GUESTS, error, "error")
        return None
    troubles.over(_NO_GUESTS)
    return guests


def node_reports(
    host: str,
    facts: DriverFacts,
    *,
    enabled: bool,
    running: Collection[str],
    building: Collection[str],
    failed_builds: int,
    node_of: Mapping[str, str],
    refused: Mapping[str, str],
) -> tuple[NodeReport, ...]:
    """Return the reports of a host's nodes; none if the driver failed to list them. The cell sets ``cell``.

    ``running`` and ``building`` are instances as they were after ``facts``: an instance that came in between
    is reported as not counted yet. ``node_of``: the node of each instance, for hosts with several. Hardware
    and metrics are reported of a host with one node only. ``refused``: placement's refusals, by node.
    """
    nodes = facts.nodes or {}
    if len(nodes) == 1:
        of_node = {node: ({*running}, {*building}) for node in nodes.values()}
    else:
        facts = msgspec.structs.replace(facts, hardware=None, metrics={})
        of_node = {node: (set(), set()) for node in nodes.values()}
        for position, some in enumerate((running, building)):
            for guest in some:
                if (node := node_of.get(guest)) in of_node:
                    of_node[node][position].add(guest)
    reports = (
        _report(host, "" if name == host else name, node, facts, enabled, *of_node[node], failed_builds)
        for name, node in nodes.items()
    )
    return tuple(msgspec.structs.replace(each, refused=refused.get(each.node)) for each in reports)


def _report(
    host: str,
    name: str,
    node: str,
    facts: DriverFacts,
    enabled: bool,
    running: set[str],
    building: set[str],
    failed_builds: int,
) -> NodeReport:
    guests = sorted(running | building)
    stats = {} if facts.disk_store is None else {KEEPS_DISKS: facts.disk_store}
    if facts.moves_live:
        stats[LIVE_MOVES] = YES
    if facts.disk_store is not None and facts.keeps_shelved:
        stats[KEEPS_SHELVED] = YES
    if facts.resizes:
        stats[RESIZES_IN_PLACE] = YES
    hardware = facts.hardware
    return NodeReport(
        host=host,
        nodename=name,
        node=node,
        cell="",
        enabled=enabled,
        instances={guest: _reported(guest, hardware) for guest in guests},
        num_instances=len(guests),
        num_io_ops=len(building),
        failed_builds=failed_builds,
        metrics=facts.metrics,
        stats=stats,
        numa_topology=None if hardware is None else hardware.numa_topology,
        pci_device_pools=() if hardware is None else hardware.pci_device_pools,
    )


async def _nodes(context: AgentContext, host: str, troubles: Troubles) -> dict[str, str] | None:
    try:
        nodes = await read_nodes(context, host)
    except Exception as error:
        troubles.tell(_NO_NODES, error, "error")
        return None
    troubles.over(_NO_NODES)
    return nodes


async def _hardware(context: AgentContext, troubles: Troubles) -> Hardware | None:
    try:
        hardware = await context.driver.hardware()
    except Exception as error:
        # Then no claim is assigned any of it.
        troubles.tell(_NO_HARDWARE, error, "error")
        return None
    troubles.over(_NO_HARDWARE)
    return hardware


async def _metrics(context: AgentContext, troubles: Troubles) -> dict[str, float]:
    try:
        metrics = await context.driver.metrics()
    except Exception as error:
        troubles.tell(_NO_METRICS, error, "error")
        return {}
    troubles.over(_NO_METRICS)
    numbers = {name: float(value) for name, value in metrics.items() if is_metric(name, value)}
    if len(numbers) < len(metrics):
        # JSON has neither NaN nor half a character: the message would be refused, and the host be silent.
        left_out = ", ".join(sorted(ascii(name)[:MAX_NAME] for name in metrics.keys() - numbers.keys()))
        troubles.tell(_LEFT_OUT, left_out)
    else:
        troubles.over(_LEFT_OUT)
    return numbers


def is_metric(name: object, value: object) -> bool:
    """Return whether a metric of a foreign driver is a finite number with a name that can be sent."""
    if not isinstance(name, str) or not is_storable(name, MAX_NAME):
        return False
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def _reported(guest: str, hardware: Hardware | None) -> NodeInstance:
    if hardware is None:
        return NodeInstance()
    assignment = hardware.counted.get(guest)
    return NodeInstance(assignment="" if assignment is None else digest(assignment))


class SentReports:
    """Remembers the reports that the cell has.

    ``health``: least seconds between two reports of values that change with each guest. ``refresh``: seconds
    after which all reports of a host with several nodes are sent again, as the cell leaves a new node out
    while it cannot ask placement for its owner. ``known``: the nodes of which the cell has had a report.
    """

    def __init__(self, health: float, refresh: float) -> None:
        self._health = health
        self._refresh = refresh
        self.known: set[str] = set()
        self.forget()

    def forget(self) -> None:
        """Note that the cell has no report."""
        self.known.clear()
        self._sent: dict[str, NodeReport] = {}
        self._sent_at = self._began = 0.0

    def due(self, reports: Sequence[NodeReport], now: float) -> tuple[NodeReport, ...]:
        """Return the reports to send. A node that is gone is reported as disabled."""
        if len(reports) > 1 and now - self._began >= self._refresh:
            self._sent, self._began = {}, now
        there = {report.node for report in reports}
        gone = [each for each in self._sent.values() if reports and each.node not in there]
        disabled = [msgspec.structs.replace(each, enabled=False) for each in gone]
        return tuple(each for each in (*reports, *disabled) if self._is_due(each, now))

    def take(self, reports: Sequence[NodeReport], asked: float) -> None:
        """Note that the cell has taken these reports, which were sent at ``asked`` (monotonic seconds)."""
        if reports:
            self._sent |= {report.node: report for report in reports}
            self.known |= {report.node for report in reports}
            self._sent_at = asked

    def _is_due(self, report: NodeReport, now: float) -> bool:
        sent = self._sent.get(report.node)
        if sent is None or sent.enabled != report.enabled:
            return True
        return report != sent and now - self._sent_at >= self._health
