"""Generated hosts and requests, for Nova's filters and weighers and for ours."""

import random
from collections.abc import Sequence
from typing import Any

from roost.model.aggregate import HostAggregate
from roost.model.node import NodeInstance, SupportedInstance
from roost.model.spec import Flavor, Image, RequestedDestination, RequestSpec, ServerGroup
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest, progress_at_start
from support.clouds import NOW, InAggregates
from support.nova_words import KEYS, OWN_PROPERTY, VALUES, extra_specs, properties, query

Plain = dict[str, Any]

INSTANCES = [f"00000000-0000-4000-8000-0000000000{number:02d}" for number in range(30)]
NEW_INSTANCE = "00000000-0000-4000-8000-000000000099"
"""An instance that no host has."""
CELLS = ("11111111-0000-4000-8000-000000000001", "11111111-0000-4000-8000-000000000002")
PROJECTS = ("p0", "p1", "p2", "p3")
IMAGES = ("i0", "i1", "i2")
POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
FLAVORS = ("f0", "f1", "f2", "f 3", "größe")

SUPPORTED = (
    (),
    (("x86_64", "kvm", "hvm"),),
    (("x86_64", "kvm", "hvm"), ("i686", "kvm", "hvm")),
    (("aarch64", "qemu", "hvm"),),
    (("x86_64", "xen", "xen"), ("x86_64", "xen", "hvm")),
)
_STATS = (
    {},
    {"trusted": "yes"},
    {"trusted": "8", "cores": "16"},
    {"ssd": "a", "größe": "grün", "json": '{"cores": 8, "deep": {"er": "x"}, "list": ["a", "b"]}'},
    {"json": "no json", "kind": "", "num_instances": "99", "hypervisor_type": "other"},
    {"json": '"text"', "trusted": "True", "hypervisor_version": "8"},
)
_NUMBERS = ("-1", "2.5", "0", "1e1", " 3 ", "much", "", "1,2", "-0.5", "1000000")
_METADATA = {
    "filter_tenant_id": ("p0", "p0, p1", "p9", "", " p2 ,p3"),
    "filter_tenant_id3": ("p2,p3", "p1"),
    "filter_tenant_ids": ("p3",),
    "instance_type": ("f0", "f0, f1", "f2", "f 3", "", "größe,f1", "F0"),
    "max_io_ops_per_host": ("3", "9", "many", "", "3.5", "-1", "1_0", " 2 "),
    "max_instances_per_host": ("2", " 51", "", "0", "3,4"),
    "os_distro": ("debian", "debian, centos", "other", ""),
    "hw_vif_model": ("virtio", "e1000", "VIRTIO"),
    "hw_vif_multiqueue_enabled": ("true", "True", "False"),
    "hw_cpu_cores": ("4", "04", "2,4"),
    "os_type": ("linux, windows", "Windows"),
    OWN_PROPERTY: ("gold", "gold, silver"),
    "hw_architecture": ("x86_64", "amd64", "i686,aarch64"),
    "img_hv_type": ("kvm", "qemu,xen"),
    **{
        f"{name}_weight_multiplier": _NUMBERS
        for name in (
            *("ram", "cpu", "disk", "io_ops", "num_instances", "hypervisor_version", "pci", "metrics"),
            *("build_failure", "cross_cell_move", "soft_affinity", "soft_anti_affinity", "image_props"),
        )
    },
}


def host(draw: random.Random, number: int) -> Plain:
    """A host as plain data: the fields that tests/nova/upstream/judging.py reads."""
    aggregates = [
        {
            "uuid": f"22222222-0000-4000-8000-{number:06d}{each:06d}",
            "name": f"g{each}",
            "metadata": metadata(draw),
        }
        for each in range(draw.randrange(4))
    ]
    return {
        "host": f"h{number}",
        "nodename": draw.choice(("", f"n{number}")),
        "node": f"33333333-0000-4000-8000-{number:012d}",
        "cell": draw.choice(CELLS),
        "enabled": draw.random() < 0.8,
        "silent": draw.choice((0, 30, 50, 70, 500, -30, -90)),
        "free_ram_mb": draw.choice((-512, 0, 1024, 2048, 4096, 65536)),
        "free_disk_mb": draw.choice((-1024, 0, 20480, 102400, 1000)),
        "total_usable_ram_mb": 65536,
        "vcpus_total": draw.choice((0, 7, 8, 16)),
        "vcpus_used": draw.choice((0, 4, 40)),
        "cpu_allocation_ratio": draw.choice((1.0, 4.0, 1.5)),
        "num_instances": draw.choice((0, 1, 3, 50, 51)),
        "num_io_ops": draw.choice((0, 2, 8, 9)),
        "failed_builds": draw.choice((0, 0, 1, 5)),
        "host_ip": draw.choice((f"10.{draw.randrange(2)}.{draw.randrange(2)}.{number % 250}", "fd00::7")),
        "hypervisor_type": draw.choice(("QEMU", "xen", None)),
        "hypervisor_version": draw.choice((6002003, 8000000, 7000000, None, 1000000)),
        "cpu_info": draw.choice(
            (
                {
                    "arch": "x86_64",
                    "topology": {"cores": draw.choice((4, 16))},
                    "features": ["avx", "sse"],
                    "maxphysaddr": {"bits": draw.choice((39, 46))},
                },
                {"arch": "aarch64", "maxphysaddr": {}},
                {"arch": None, "topology": '{"cores": 8}'},
            )
        ),
        "supported_instances": [list(each) for each in draw.choice(SUPPORTED)],
        "stats": draw.choice(_STATS),
        "metrics": {
            name: draw.choice((0.0, -3.5, float(draw.randrange(100))))
            for name in ("heat", "power")
            if draw.random() < 0.7
        },
        "aggregates": aggregates,
        "instances": {uuid: properties(draw, 0.2) for uuid in draw.sample(INSTANCES, draw.randrange(4))},
        "pci_device_pools": [{"count": draw.choice((0, 4, 70))} for _ in range(draw.randrange(3))],
    }


def metadata(draw: random.Random) -> dict[str, str]:
    """Metadata of one aggregate."""
    found = {key: draw.choice(VALUES) for key in KEYS if draw.random() < 0.4}
    for key, values in _METADATA.items():
        if draw.random() < 0.1:
            found[key] = draw.choice(values)
    return found


def request(draw: random.Random) -> Plain:
    """A request as plain data."""
    with_image = draw.random() < 0.8
    return {
        "project_id": draw.choice(PROJECTS),
        "flavor": draw.choice(FLAVORS),
        "extra_specs": extra_specs(draw),
        "image": draw.choice(IMAGES) if with_image else None,
        "properties": properties(draw, draw.choice((0.05, 0.3))) if with_image else {},
        "hints": hints(draw),
        "cell": draw.choice((None, *CELLS)),
        **group_and_instance(draw),
    }


def hints(draw: random.Random) -> dict[str, tuple[str, ...]]:
    """Scheduler hints."""
    found: dict[str, tuple[str, ...]] = {}
    for name in ("different_host", "same_host"):
        if draw.random() < 0.5:
            some = tuple(draw.sample(INSTANCES, draw.randrange(1, 6)))
            found[name] = draw.choice((some, some, some, (), ("",), ("no uuid",)))
    if draw.random() < 0.7:
        near = draw.choice(("10.0.0.3", "10.1.0.3", "fd00::3", "", "10.0.0", "here"))
        found["build_near_host_ip"] = (near,)
    if draw.random() < 0.5:
        found["cidr"] = (
            draw.choice(("/8", "/16", "/24", "/31", "/0", "", "/33", "/255.255.0.0", "8", "/64")),
        )
    if draw.random() < 0.8:
        found["query"] = (query(draw),)
    return found


def group_and_instance(draw: random.Random) -> Plain:
    """The request's instance, and perhaps a server group that it is in; members may be on hosts, twice during
    a move, or nowhere."""
    instance = draw.choice((NEW_INSTANCE, NEW_INSTANCE, *INSTANCES))
    if draw.random() < 0.2:
        return {"instance": instance, "group": None}
    others = [each for each in draw.sample(INSTANCES, draw.choice((0, 1, 3, 10))) if each != instance]
    group = {
        "uuid": "44444444-0000-4000-8000-000000000001",
        "policy": draw.choice(POLICIES),
        "members": [*others, instance],
        "max_server_per_host": draw.choice((1, 1, 2, 3)),
    }
    return {"instance": instance, "group": group}


def report_of(plain: Plain) -> InAggregates:
    """The host as a node reports it."""
    return InAggregates(
        node=plain["node"],
        host=plain["host"],
        nodename=plain["nodename"],
        cell=plain["cell"],
        last_seen=NOW - plain["silent"],
        enabled=plain["enabled"],
        hypervisor_type=plain["hypervisor_type"] or "",
        hypervisor_version=plain["hypervisor_version"] or 0,
        supported_instances=tuple(SupportedInstance(*each) for each in plain["supported_instances"]),
        host_ip=plain["host_ip"],
        cpu_info=plain["cpu_info"],
        stats=plain["stats"],
        instances={
            uuid: NodeInstance(image_properties=properties) for uuid, properties in plain["instances"].items()
        },
        num_instances=plain["num_instances"],
        num_io_ops=plain["num_io_ops"],
        failed_builds=plain["failed_builds"],
        metrics=plain["metrics"],
        memory_mb=plain["total_usable_ram_mb"],
        free_ram_mb=plain["free_ram_mb"],
        free_disk_mb=plain["free_disk_mb"],
        vcpus=plain["vcpus_total"],
        vcpus_used=plain["vcpus_used"],
        cpu_allocation_ratio=plain["cpu_allocation_ratio"],
        pci_device_pools=tuple(plain["pci_device_pools"]),
        aggregates=tuple(
            HostAggregate(each["uuid"], each["name"], each["metadata"]) for each in plain["aggregates"]
        ),
    )


def spec_of(plain: Plain) -> RequestSpec:
    """The request as a request spec."""
    cell, group = plain["cell"], plain["group"]
    return RequestSpec(
        project_id=plain["project_id"],
        user_id="user",
        flavor=Flavor(plain["flavor"], 1, 1, 1, plain["extra_specs"]),
        image=None if plain["image"] is None else Image(plain["image"], None, plain["properties"]),
        scheduler_hints=plain["hints"],
        requested_destination=cell and RequestedDestination(cell=cell, allow_cross_cell_move=True),
        group=group and ServerGroup(group["uuid"], group["policy"], (), group["max_server_per_host"]),
    )


def progress_of(
    plain: Plain, hosts: Sequence[Plain], request: SchedulingRequest, table: NodeTable
) -> GroupPlacement:
    """The members of the request's group on the hosts, as their claims tell them."""
    if plain["group"] is None:
        return GroupPlacement()
    claims = {
        member: [host["node"] for host in hosts if member in host["instances"]]
        for member in plain["group"]["members"]
    }
    return progress_at_start(request, table, claims=claims)


def hosts_and_requests(seed: int, hosts: int, requests: int) -> tuple[Sequence[Plain], Sequence[Plain]]:
    """Hosts and requests that depend on a seed alone."""
    draw = random.Random(seed)
    return [host(draw, number) for number in range(hosts)], [request(draw) for _ in range(requests)]
