"""The report of a node: what the scheduler should know of it beside its inventory."""

import sys
from collections.abc import Collection

import msgspec

from roost.compute.driving import Metrics, ReadHardware
from roost.compute.hardware import Hardware
from roost.compute.provider_tree import provider_uuid
from roost.machine import Ask, Log, Machine
from roost.model.assignment import digest
from roost.model.node import NodeInstance, NodeReport
from roost.model.text import clean_text, error_text, is_storable
from roost.model.vocabulary import MAX_NAME


class Facts(msgspec.Struct, frozen=True):
    """What a driver tells of its host at one moment."""

    hardware: Hardware | None
    metrics: dict[str, float]


def read_facts(host: str) -> Machine[Facts]:
    """Ask the driver. What it cannot tell is left out: it must not stop the heartbeat."""
    hardware = yield from _hardware(host)
    return Facts(hardware, (yield from _metrics(host)))


def node_report(
    host: str,
    facts: Facts,
    *,
    enabled: bool,
    running: Collection[str],
    building: Collection[str],
    failed_builds: int,
) -> NodeReport:
    """The report of a host with one node. ``cell`` is the cell's to say.

    ``running`` and ``building`` are instances, as they were after ``facts``: those that came in between are
    reported as not counted yet.
    """
    guests = sorted({*running, *building})
    hardware = facts.hardware
    return NodeReport(
        host=host,
        node=provider_uuid(host),
        cell="",
        enabled=enabled,
        instances={guest: _reported(guest, hardware) for guest in guests},
        num_instances=len(guests),
        num_io_ops=len(building),
        failed_builds=failed_builds,
        metrics=facts.metrics,
        numa_topology=None if hardware is None else hardware.numa_topology,
        pci_device_pools=() if hardware is None else hardware.pci_device_pools,
    )


def _hardware(host: str) -> Machine[Hardware | None]:
    try:
        return (yield from Ask("driver", ReadHardware()).do())
    except Exception as error:
        # Then no claim is assigned any of it.
        values = {"host": host, "error": error_text(error)}
        yield from Log("the driver cannot tell its hardware", values, "error").do()
        return None


def _metrics(host: str) -> Machine[dict[str, float]]:
    try:
        told = yield from Ask("driver", Metrics()).do()
    except Exception as error:
        values = {"host": host, "error": error_text(error)}
        yield from Log("the driver has no metrics", values, "error").do()
        return {}
    numbers: dict[str, float] = {}
    for name, value in told.items():
        if is_metric(name, value):
            numbers[name] = float(value)
        else:
            # JSON has neither NaN nor half a character: the message would be refused, and the host be silent.
            values = {"host": host, "metric": clean_text(str(name))}
            yield from Log("a metric of the driver cannot be reported", values, "warning").do()
    return numbers


def is_metric(name: object, value: object) -> bool:
    """Whether a foreign driver tells a finite number under a name that can be sent."""
    if not isinstance(name, str) or not is_storable(name, MAX_NAME):
        return False
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def _reported(guest: str, hardware: Hardware | None) -> NodeInstance:
    if hardware is None:
        return NodeInstance()
    assignment = hardware.counted.get(guest)
    return NodeInstance(assignment="" if assignment is None else digest(assignment))
