"""Nova's NUMA topologies: what flavors ask for, how guests fit on hosts, and what they use there."""

from unittest import mock

import nova.conf
from nova.pci import stats
from nova.virt import hardware

from nova import exception, objects

objects.register_all()
CONF = nova.conf.CONF
CONF([], project="nova", default_config_files=[], default_config_dirs=[])


def guests(requests):
    """For each flavor and image the cells that they ask for, null without a topology; a text for a request
    that Nova refuses."""
    return [_described(request) for request in requests]


def fits(cases):
    """For each case what a guest gets of a host, see `_given`: as Nova decides it, and as Nova would decide
    it if it judged each guest cell on each host cell afresh; null where it does not fit.

    A case has ``host`` (a serialised NUMATopology), ``request``, ``ratios``, ``network`` or null, ``pack``,
    ``pools`` and ``pci``: pools of devices and requests for them.
    """
    return [[_fitted(case), _fitted(case, afresh=True)] for case in cases]


def accepted(cases):
    """For each case, with ``cells`` that a guest was given, whether Nova fits the guest on just these host
    cells; and what the host uses then by Nova's count: a list for each cell, or a text."""
    return [[_fits_there(case), _used(case)] for case in cases]


def _flavor(request):
    flavor = request["flavor"]
    return objects.Flavor(
        name=flavor["name"],
        vcpus=flavor["vcpus"],
        memory_mb=flavor["memory_mb"],
        extra_specs=flavor["extra_specs"],
    )


def _guest(request):
    image = objects.ImageMeta.from_dict({"name": "image", "properties": request.get("properties", {})})
    return hardware.numa_get_constraints(_flavor(request), image)


def _described(request):
    try:
        guest = _guest(request)
    except (exception.NovaException, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    if guest is None:
        return None
    first = guest.cells[0]
    return {
        "cells": [[cell.id, len(cell.cpuset), sorted(cell.pcpuset), cell.memory] for cell in guest.cells],
        "cpu_policy": first.cpu_policy or "shared",
        "thread_policy": first.cpu_thread_policy or "prefer",
        "page_size": first.pagesize or None,
        "isolate_emulator": guest.emulator_threads_isolated,
    }


def _limits(case):
    cpu, ram = case["ratios"]
    limits = objects.NUMATopologyLimits(cpu_allocation_ratio=cpu, ram_allocation_ratio=ram)
    network = case["network"]
    if network is not None:
        limits.network_metadata = objects.NetworkMetadata(
            physnets=set(network["physnets"]), tunneled=network["tunneled"]
        )
    return limits


def _devices(case, host):
    pools = [objects.PciDevicePool.from_dict(pool) for pool in case["pools"]]
    requests = [
        objects.InstancePCIRequest(
            request_id=each["id"], count=each["count"], spec=each["specs"], numa_policy=each["numa_policy"]
        )
        for each in case["pci"]
    ]
    return stats.PciDeviceStats(host, stats=objects.PciDevicePoolList(objects=pools)), requests


class _Forgetful(set):
    """A set that finds nothing again."""

    def __contains__(self, item):
        return False


_fit_cell = hardware._numa_fit_instance_cell


def _fit_cell_afresh(host_cell, instance_cell, limits=None, cpuset_reserved=0):
    return _fit_cell(host_cell, instance_cell.obj_clone(), limits, cpuset_reserved)


def _fitted(case, afresh=False):
    host = objects.NUMATopology.obj_from_primitive(case["host"])
    devices, requests = _devices(case, host)
    CONF.set_override("packing_host_numa_cells_allocation_strategy", case["pack"], "compute")
    arguments = {
        "host_topology": host,
        "instance_topology": _guest(case["request"]),
        "provider_mapping": None,
        "limits": _limits(case),
        "pci_requests": requests,
        "pci_stats": devices,
    }
    if not afresh:
        return _given(hardware.numa_fit_instance_to_host(**arguments))
    # Nova remembers which cells fit by ids that it changes while it tries, and keeps the page size that the
    # first host cell had.
    with (
        mock.patch.object(hardware, "set", _Forgetful, create=True),
        mock.patch.object(hardware, "_numa_fit_instance_cell", _fit_cell_afresh),
    ):
        return _given(hardware.numa_fit_instance_to_host(**arguments))


def _given(fitted):
    """For each guest cell the host cell, the page size, and how many CPUs are pinned and reserved."""
    if fitted is None:
        return None
    return [
        [cell.id, cell.pagesize, len(cell.cpu_pinning or {}), len(cell.cpuset_reserved or ())]
        for cell in fitted.cells
    ]


def _fits_there(case):
    host = objects.NUMATopology.obj_from_primitive(case["host"])
    by_id = {cell.id: cell for cell in host.cells}
    alone = objects.NUMATopology(cells=[by_id[cell["host"]] for cell in case["cells"]])
    limits = _limits({**case, "network": None})
    fitted = hardware.numa_fit_instance_to_host(alone, _guest(case["request"]), None, limits=limits)
    return fitted is not None and [cell.id for cell in fitted.cells] == [
        cell["host"] for cell in case["cells"]
    ]


def _used(case):
    host = objects.NUMATopology.obj_from_primitive(case["host"])
    guest = _guest(case["request"])
    for cell, given in zip(guest.cells, case["cells"], strict=True):
        cell.id = given["host"]
        cell.pagesize = given.get("page_size_kb")
        cell.cpu_pinning = dict(given.get("pinned", ()))
        cell.cpuset_reserved = set(given.get("reserved", ())) or None
        assert len(cell.cpuset) == given.get("shared", 0)
    if not all(cell.mempages for cell in host.cells):
        return None  # Nova cannot count what is used of a cell without pages.
    try:
        used = hardware.numa_usage_from_instance_numa(host, guest)
    except exception.NovaException as error:
        return f"{type(error).__name__}: {error}"
    return [
        [
            sorted(cell.pinned_cpus),
            cell.cpu_usage,
            cell.memory_usage,
            sorted([pages.size_kb, pages.free] for pages in cell.mempages),
        ]
        for cell in used.cells
    ]
