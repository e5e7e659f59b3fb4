"""Nova's own scheduler in a process of Nova's interpreter, which has nothing of Roost.

A question is a line ``[function, arguments]`` of JSON on standard input, its answer a line of JSON on
standard output. The process ends with its input. Arguments of the command are files of Nova's configuration.
Warnings alone are logged.
"""

# ruff: noqa: E402 - as in the command nova-scheduler, the choice of threads is before all other imports
from nova import monkey_patch  # isort: skip

monkey_patch.patch(backend="threading")

import sys
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import nova.conf
from nova.scheduler.manager import SchedulerManager
from nova.virt import fake
from timed_calls import answer, own_output, timed_calls

from nova import config, context, objects, rpc

IMAGE = {
    "id": "155d900f-4e14-4e4c-a73d-069cbf4541e7",
    "name": "image",
    "status": "active",
    "disk_format": "qcow2",
    "container_format": "bare",
    "min_disk": 0,
    "min_ram": 0,
    "size": 0,
    "properties": {},
}
"""The image of all requests, as Glance describes it."""

CELLS = 2
CPUS_OF_A_CELL = 32
MEMORY_OF_A_CELL = 229_376
"""The NUMA topology of a host; memory in MiB."""


def columns(numa: bool) -> dict[str, Any]:
    """Return the columns of a compute node that its virt driver reports, as Nova's object writes them.

    The driver is Nova's fake one. ``numa``: with a NUMA topology, as hosts of libvirt have it.
    """
    driver = fake.FakeDriver(None)
    driver.init_host("bench")
    resources = driver.get_available_resource("bench")
    node = objects.ComputeNode(context.get_admin_context())
    node.update_from_virt_driver({**resources, "numa_topology": _topology()._to_json() if numa else None})
    node.stats = {"failed_builds": "0", "num_instances": "0", "io_workload": "0"}
    node.pci_device_pools = objects.PciDevicePoolList(objects=[])
    updates = node.obj_get_changes()
    for convert in ("_convert_stats_to_db_format", "_convert_host_ip_to_db_format"):
        getattr(node, convert)(updates)
    node._convert_supported_instances_to_db_format(updates)
    node._convert_pci_stats_to_db_format(updates)
    names = ("cpu_info", "stats", "supported_instances", "pci_stats", "numa_topology")
    return {
        **{name: updates[name] for name in names if name in updates},
        "hypervisor_type": node.hypervisor_type,
        "hypervisor_version": node.hypervisor_version,
    }


def _topology() -> Any:
    cells = []
    for number in range(CELLS):
        cpus = set(range(number * CPUS_OF_A_CELL, (number + 1) * CPUS_OF_A_CELL))
        half = CPUS_OF_A_CELL // 2
        pages = [
            objects.NUMAPagesTopology(
                size_kb=size, total=MEMORY_OF_A_CELL * share // size, used=0, reserved=0
            )
            for size, share in ((4, 1024), (2048, 0), (1_048_576, 0))
        ]
        siblings = [{cpu, cpu + half} for cpu in sorted(cpus)[:half]]
        cells.append(
            objects.NUMACell(
                id=number,
                socket=number,
                cpuset=cpus,
                pcpuset=cpus,
                memory=MEMORY_OF_A_CELL,
                cpu_usage=0,
                memory_usage=0,
                pinned_cpus=set(),
                siblings=siblings,
                mempages=pages,
            )
        )
    return objects.NUMATopology(cells=cells)


def specs(flavors: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return a serialised request spec for each flavor."""
    return [
        objects.RequestSpec(
            context=None,
            project_id="project",
            user_id="user",
            flavor=objects.Flavor(ephemeral_gb=0, swap=0, extra_specs={}, **flavor),
            image=objects.ImageMeta.from_dict(IMAGE),
            num_instances=1,
            instance_uuid=str(uuid.uuid4()),
            scheduler_hints={},
            is_bfv=False,
            requested_resources=[],
            requested_networks=objects.NetworkRequestList(objects=[]),
            pci_requests=objects.InstancePCIRequests(requests=[]),
            instance_group=None,
            force_hosts=None,
            force_nodes=None,
            ignore_hosts=None,
            retry=None,
            limits=objects.SchedulerLimits(),
            numa_topology=None,
            availability_zone=None,
        ).obj_to_primitive()
        for flavor in flavors
    ]


class Scheduling:
    """Calls of Nova's ``select_destinations``, from the serialised request spec to serialised selections."""

    def __init__(self) -> None:
        rpc.init(nova.conf.CONF)
        self._manager = SchedulerManager()

    def select(self, spec: Mapping[str, Any], instance: str) -> None:
        """Decide one call."""
        asked = context.RequestContext(user_id="user", project_id="project", request_id=f"req-{uuid.uuid4()}")
        found = self._manager.select_destinations(
            asked,
            spec_obj=objects.RequestSpec.obj_from_primitive(spec, asked),
            instance_uuids=[instance],
            return_objects=True,
            return_alternates=True,
        )
        [[first, *_]] = [[each.obj_to_primitive() for each in some] for some in found]
        if "nova_object.data" not in first:
            raise ValueError(f"no selection: {first}")


class Nova:
    """The functions that are asked for."""

    def __init__(self) -> None:
        self._scheduling: Scheduling | None = None

    def columns(self, numa: bool) -> dict[str, Any]:
        """Return `columns`."""
        return columns(numa)

    def specs(self, flavors: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return `specs`."""
        return specs(flavors)

    def calls(self, specs: Sequence[Mapping[str, Any]], **limits: Any) -> dict[str, Any]:
        """Make calls, and return what `timed_calls` returns."""
        if self._scheduling is None:
            self._scheduling = Scheduling()
        made: dict[str, Any] = timed_calls(self._scheduling.select, specs, **limits)
        return made


def main() -> None:
    """Read the configuration, and answer."""
    answers = own_output()
    files = [part for file in sys.argv[1:] for part in ("--config-file", file)]
    config.parse_args(["nova-scheduler", *files])
    objects.register_all()
    objects.Service.enable_min_version_cache()
    answer(Nova(), answers)


if __name__ == "__main__":
    main()
