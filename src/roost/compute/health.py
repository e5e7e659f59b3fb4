"""The report of a node: what the scheduler should know of it beside its inventory."""

import sys
from collections.abc import Collection

import msgspec

from roost.compute.driving import Metrics, ReadHardware
from roost.compute.hardware import Hardware
from roost.compute.tree_provider import provider_uuid
from roost.compute.troubles import Troubles
from roost.machine import Ask, Machine
from roost.model.assignment import digest
from roost.model.node import NodeInstance, NodeReport
from roost.model.text import is_storable
from roost.model.vocabulary import MAX_NAME

_NO_HARDWARE = "the driver cannot tell its hardware"
_NO_METRICS = "the driver has no metrics"
_LEFT_OUT = "metrics of the driver cannot be reported"


class Facts(msgspec.Struct, frozen=True):
    """What a driver tells of its host at one moment."""

    hardware: Hardware | None
    metrics: dict[str, float]


def read_facts(troubles: Troubles) -> Machine[Facts]:
    """Ask the driver. What it cannot tell is left out, and told: it must not stop the heartbeat."""
    hardware = yield from _hardware(troubles)
    return Facts(hardware, (yield from _metrics(troubles)))


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


def _hardware(troubles: Troubles) -> Machine[Hardware | None]:
    try:
        hardware = yield from Ask("driver", ReadHardware()).do()
    except Exception as error:
        # Then no claim is assigned any of it.
        yield from troubles.tell(_NO_HARDWARE, error, "error")
        return None
    yield from troubles.over(_NO_HARDWARE)
    return hardware


def _metrics(troubles: Troubles) -> Machine[dict[str, float]]:
    try:
        told = yield from Ask("driver", Metrics()).do()
    except Exception as error:
        yield from troubles.tell(_NO_METRICS, error, "error")
        return {}
    yield from troubles.over(_NO_METRICS)
    numbers = {name: float(value) for name, value in told.items() if is_metric(name, value)}
    if len(numbers) < len(told):
        # JSON has neither NaN nor half a character: the message would be refused, and the host be silent.
        left_out = ", ".join(sorted(ascii(name)[:MAX_NAME] for name in told.keys() - numbers.keys()))
        yield from troubles.tell(_LEFT_OUT, left_out)
    else:
        yield from troubles.over(_LEFT_OUT)
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
