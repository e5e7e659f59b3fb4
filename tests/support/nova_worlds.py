"""Generated hosts and requests, for Nova's filters and weighers and for ours."""

import random
from collections.abc import Sequence
from typing import Any

from roost.model.node import HostAggregate, NodeInstance, NodeReport, SupportedInstance
from roost.model.spec import Flavor, Image, RequestedDestination, RequestSpec
from support.clouds import NOW

Plain = dict[str, Any]

INSTANCES = [f"00000000-0000-4000-8000-0000000000{number:02d}" for number in range(30)]
CELLS = ("11111111-0000-4000-8000-000000000001", "11111111-0000-4000-8000-000000000002")
PROJECTS = ("p0", "p1", "p2", "p3")
IMAGES = ("i0", "i1", "i2")
KEYS = ("ssd", "kind", "cores")
WORDS = ("a", "b", "a,b", "b , c", "8", "16", "4,32", "yes", "x y z", "abc")
OPERATORS = (
    *(
        "a",
        "b",
        "c",
        "a,b",
        "8",
        "yes",
        "",
        "  ",
        "= 8",
        "== 16",
        ">= 8",
        "<= 8",
        "!= 16",
        "<in> b",
        "<in> z",
    ),
    *("<all-in> x z", "<all-in> x q", "<or> a <or> yes", "<or> q", "s== a", "s!= a", "s< b", "s<= b", "s> a"),
    *("s>= b", "=", "<or>", "> 3", "<or> a b", "QEMU", ">= 7000000", "<in> Skylake", ">= 40", "True"),
)
CAPABILITIES = (
    *("hypervisor_type", "hypervisor_version", "capabilities:hypervisor_type", "capabilities:cpu_info:arch"),
    *(
        "capabilities:cpu_info:topology:cores",
        "capabilities:trusted",
        "trusted",
        "capabilities:num_instances",
    ),
    *(
        "capabilities:hypervisor_version",
        "capabilities:nothing",
        "capabilities:host_ip",
        "hw:maxphysaddr_bits",
    ),
    *("hw:cpu_policy", "free_ram_mb", "capabilities:cpu_info:features", "capabilities:failed_builds:x"),
)
SUPPORTED = (
    (),
    (("x86_64", "kvm", "hvm"),),
    (("x86_64", "kvm", "hvm"), ("i686", "kvm", "hvm")),
    (("aarch64", "qemu", "hvm"),),
    (("x86_64", "xen", "xen"), ("x86_64", "xen", "hvm")),
)
QUERIES = (
    '[">=", "$free_ram_mb", 2048]',
    '["and", [">=", "$free_ram_mb", 1024], [">=", "$free_disk_mb", 20480]]',
    '["or", ["=", "$host", "h1"], ["in", "$hypervisor_hostname", "h2", "h3"]]',
    '["<", "$num_instances", 3]',
    '["=", "$stats.trusted", "yes"]',
    '["not", ["<=", "$num_io_ops", 2]]',
    '["and", ["not", [">", "$num_instances", 3]], ["=", "$host", "h1", "h1"]]',
    '["=", "$nothing", 3]',
    '["and"]',
    '["or"]',
    "[]",
    '["<", "$free_ram_mb", "text"]',
)


def host(draw: random.Random, number: int) -> Plain:
    """A host as plain data: the fields that tests/nova/upstream/judging.py reads."""
    some = draw.sample(INSTANCES, draw.randrange(4))
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
        "free_disk_mb": draw.choice((-1024, 0, 20480, 102400)),
        "total_usable_ram_mb": 65536,
        "vcpus_total": draw.choice((0, 8, 16)),
        "vcpus_used": draw.choice((0, 4, 40)),
        "cpu_allocation_ratio": draw.choice((1.0, 4.0)),
        "num_instances": draw.choice((0, 1, 3, 50, 51)),
        "num_io_ops": draw.choice((0, 2, 8, 9)),
        "failed_builds": draw.choice((0, 0, 1, 5)),
        "host_ip": f"10.{draw.randrange(2)}.{draw.randrange(2)}.{number % 250}",
        "hypervisor_type": draw.choice(("QEMU", "xen")),
        "hypervisor_version": draw.choice((6002003, 8000000, 7000000)),
        "cpu_info": {
            "arch": "x86_64",
            "topology": {"cores": draw.choice((4, 16))},
            "features": ["avx", "sse"],
            "maxphysaddr": {"bits": draw.choice((39, 46))},
        },
        "supported_instances": [list(each) for each in draw.choice(SUPPORTED)],
        "stats": draw.choice(({}, {"trusted": "yes"}, {"trusted": "8", "cores": "16"})),
        "metrics": {name: float(draw.randrange(100)) for name in ("heat", "power") if draw.random() < 0.7},
        "aggregates": aggregates,
        "instances": {
            uuid: {
                name: draw.choice(values)
                for name, values in (
                    ("os_distro", ("debian", "centos")),
                    ("hw_vif_model", ("virtio", "e1000")),
                )
                if draw.random() < 0.7
            }
            for uuid in some
        },
        "pci_device_pools": [{"count": draw.choice((0, 4, 70))} for _ in range(draw.randrange(3))],
    }


def metadata(draw: random.Random) -> dict[str, str]:
    """Metadata of one aggregate."""
    found = {key: draw.choice(WORDS) for key in KEYS if draw.random() < 0.4}
    for key, values in (
        ("filter_tenant_id", ("p0", "p0, p1", "p9")),
        ("filter_tenant_id3", ("p2,p3", "p1")),
        ("instance_type", ("f0", "f0, f1", "f2")),
        ("max_io_ops_per_host", ("3", "9", "many")),
        ("max_instances_per_host", ("2", " 51", "")),
        ("os_distro", ("debian", "debian, centos", "other")),
        ("hw_vif_model", ("virtio", "e1000")),
        ("ram_weight_multiplier", ("-1", "2.5", "much")),
        ("build_failure_weight_multiplier", ("0", "3")),
        ("metrics_weight_multiplier", ("0", "2")),
    ):
        if draw.random() < 0.2:
            found[key] = draw.choice(values)
    return found


def request(draw: random.Random) -> Plain:
    """A request as plain data."""
    with_image = draw.random() < 0.8
    properties = {
        name: draw.choice(values)
        for name, values in (
            ("hw_architecture", ("x86_64", "aarch64", "i686")),
            ("img_hv_type", ("kvm", "xen", "qemu")),
            ("hw_vm_mode", ("hvm", "xen")),
            ("img_hv_requested_version", (">=6.0", ">=7.0, <8.0", "==8.0.0", "!=6.2.3")),
            ("os_distro", ("debian", "centos")),
            ("hw_vif_model", ("virtio", "e1000")),
        )
        if draw.random() < 0.35
    }
    hints: dict[str, tuple[str, ...]] = {}
    if draw.random() < 0.5:
        hints["different_host"] = tuple(draw.sample(INSTANCES, draw.randrange(1, 6)))
    if draw.random() < 0.5:
        hints["same_host"] = tuple(draw.sample(INSTANCES, draw.randrange(1, 6)))
    if draw.random() < 0.7:
        hints["build_near_host_ip"] = (f"10.{draw.randrange(2)}.0.3",)
        if draw.random() < 0.5:
            hints["cidr"] = (draw.choice(("/8", "/16", "/24", "/31")),)
    if draw.random() < 0.8:
        hints["query"] = (draw.choice(QUERIES),)
    return {
        "project_id": draw.choice(PROJECTS),
        "flavor": draw.choice(("f0", "f1", "f2", "f3")),
        "extra_specs": extra_specs(draw),
        "image": draw.choice(IMAGES) if with_image else None,
        "properties": properties if with_image else {},
        "hints": hints,
        "cell": draw.choice((None, *CELLS)),
    }


def extra_specs(draw: random.Random) -> dict[str, str]:
    """Extra specs of a flavor."""
    found = {key: draw.choice(OPERATORS) for key in KEYS if draw.random() < 0.3}
    for key in KEYS:
        if draw.random() < 0.2:
            found[f"aggregate_instance_extra_specs:{key}"] = draw.choice(OPERATORS)
    for key in CAPABILITIES:
        if draw.random() < 0.08:
            found[key] = "40" if key == "hw:maxphysaddr_bits" else draw.choice(OPERATORS)
    return found


def report_of(plain: Plain) -> NodeReport:
    """The host as a node reports it."""
    return NodeReport(
        node=plain["node"],
        host=plain["host"],
        nodename=plain["nodename"],
        cell=plain["cell"],
        last_seen=NOW - plain["silent"],
        enabled=plain["enabled"],
        hypervisor_type=plain["hypervisor_type"],
        hypervisor_version=plain["hypervisor_version"],
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
    cell = plain["cell"]
    return RequestSpec(
        project_id=plain["project_id"],
        user_id="user",
        flavor=Flavor(plain["flavor"], 1, 1, 1, plain["extra_specs"]),
        image=None if plain["image"] is None else Image(plain["image"], None, plain["properties"]),
        scheduler_hints=plain["hints"],
        requested_destination=cell and RequestedDestination(cell=cell, allow_cross_cell_move=True),
    )


def hosts_and_requests(seed: int, hosts: int, requests: int) -> tuple[Sequence[Plain], Sequence[Plain]]:
    """Hosts and requests that depend on a seed alone."""
    draw = random.Random(seed)
    return [host(draw, number) for number in range(hosts)], [request(draw) for _ in range(requests)]
