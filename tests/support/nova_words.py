"""The vocabulary of generated hosts and requests: what operators write, and what they should not."""

import json
import random
from typing import Any

KEYS = ("ssd", "kind", "cores", "größe")
"""Metadata keys of aggregates, stats of hosts, and extra specs."""

VALUES = (
    *("a", "b", "a,b", "b , c", "8", "16", "4,32", "yes", "x y z", "abc", "", " ", ",", "8.0", "08", "1e1"),
    *("-1", "inf", "nan", "0x10", "grün", "True", "<in>", "= 8", "A"),
)
"""Values of metadata and stats."""

_OPERANDS = (
    *("a", "b", "c", "8", "16", "8.0", "7.9", "1e1", "-1", "inf", "nan", "x", "yes", "grün", "a b", "abc"),
    *("2048", "4", "avx sse", "kvm", "QEMU", "7000000", "True", "", "many"),
)
_OPERATORS = (
    *("=", "==", "!=", ">=", "<=", "s==", "s!=", "s<", "s<=", "s>", "s>=", "<in>", "<all-in>", "<or>"),
    *(">", "<", "in", "<OR>", "=="),  # some are no operators
)
_PLAIN = (
    *VALUES,
    "QEMU",
    "x86_64",
    "h1",
    "<or> a <or> yes",
    "<or> a b 8",
    "<or> <or>",
    "  ",
    "\t8",
    "c ",
    "2048",
)

CAPABILITIES = (
    *("hypervisor_type", "hypervisor_version", "hypervisor_hostname", "host", "nodename", "uuid", "host_ip"),
    *("cpu_info", "cpu_info:arch", "cpu_info:topology:cores", "cpu_info:features", "cpu_info:arch:x"),
    *("trusted", "ssd", "größe", "json:cores", "json:deep:er", "json:list", "json", "num_instances"),
    *("num_io_ops", "failed_builds", "failed_builds:x", "free_ram_mb", "free_disk_mb", "total_usable_ram_mb"),
    *("vcpus_total", "vcpus_used", "cpu_allocation_ratio", "supported_instances", "nothing", "nothing:x", ""),
    *("stats", "stats:trusted", "aggregates:x", "numa_topology"),
)
_OTHER_KEYS = (
    *("hw:cpu_policy", "resources:VCPU", "trait:CUSTOM_A", "quota:vif", "capabilities", ":", "a:b:c"),
    *("aggregate_instance_extra_specs:a:b", "aggregate_instance_extra_specs", "free_ram_mb", "trusted"),
    *("hypervisor_type", "host_ip", "num_instances", "numa_topology", "json", "vcpus_total"),
)

_VARIABLES = (
    *("$free_ram_mb", "$free_disk_mb", "$host", "$nodename", "$hypervisor_hostname", "$num_instances"),
    *(
        "$num_io_ops",
        "$stats.trusted",
        "$stats.nothing",
        "$nothing",
        "$vcpus_total",
        "$host_ip",
        "$failed_builds",
    ),
    *("$cpu_info.topology.cores", "$cpu_info.arch", "$hypervisor_version", "$", "$uuid", "$numa_topology.x"),
    "$host.x",
)
_JSON_VALUES = (
    0,
    1,
    2,
    3,
    8,
    2048,
    4096,
    7.5,
    -512,
    "h1",
    "h2",
    "x86_64",
    "yes",
    "8",
    "",
    True,
    False,
    None,
    {},
)
_JSON_OPERATORS = ("=", "<", ">", "<=", ">=", "in", "not", "and", "or")
_MALFORMED = (
    "[",
    "5",
    '"x"',
    '{"a": 1}',
    '["xor", 1]',
    "[[]]",
    "[1]",
    '["and", ["nand"]]',
    "nan",
    '["=", NaN, NaN]',
)
_EMPTY = ("null", "0", '""', "{}", "[]", "false")

CURRENT_PROPERTIES: dict[str, tuple[str, ...]] = {
    "hw_architecture": ("x86_64", "aarch64", "i686", "AMD64", "i386", "X86_64"),
    "img_hv_type": ("kvm", "xen", "qemu", "XAPI", "KVM"),
    "hw_vm_mode": ("hvm", "xen", "HV", "pv", "baremetal"),
    "img_hv_requested_version": (">=6.0", ">=7.0, <8.0", "==8.0.0", "!=6.2.3", "<=8", ">6.2.2,!=7"),
    "hw_maxphysaddr_bits": ("40", " 46", "0", "039"),
    "os_distro": ("debian", "centos", ""),
    "hw_vif_model": ("virtio", "e1000", "VIRTIO", "VirtualE1000"),
    "os_type": ("linux", "Windows"),
    "hw_scsi_model": ("virtio-scsi", "paraVirtual", "lsiLogicsas"),
    "hw_vif_multiqueue_enabled": ("true", "yes", "no", "0", "perhaps"),
    "img_hide_hypervisor_id": ("True", "on", "false"),
    "hw_cpu_cores": ("4", "04", "0", "2"),
    "hw_boot_menu": ("1", "off"),
    "os_require_quiesce": ("yes", "no"),
    "hw_disk_bus": ("virtio", "scsi"),
    "hw_machine_type": ("q35", "pc"),
    "trait:CUSTOM_A": ("required", "forbidden"),
    "trait:CUSTOM_B": ("required",),
}
"""Image properties that Nova knows by these names, with valid values."""

OWN_PROPERTY = "acme_licence"
"""An image property that Nova does not know."""

_LEGACY: dict[str, tuple[str, ...]] = {
    "architecture": ("x86_64", "amd64", "aarch64"),
    "hypervisor_type": ("kvm", "qemu"),
    "vm_mode": ("hvm", "xen"),
    "hypervisor_version_requires": (">=7.0",),
    "vmware_ostype": ("debian", "other"),
    "vmware_adaptertype": ("ide", "lsiLogic", "paraVirtual"),
    "vmware_disktype": ("sparse",),
    "xenapi_use_agent": ("true", "no"),
    "auto_disk_config": ("True",),
}


def extra_spec(draw: random.Random) -> str:
    """The value of an extra spec: an operator and operands, mostly, or anything else."""
    if draw.random() < 0.35:
        return draw.choice(_PLAIN)
    operator = draw.choice(_OPERATORS)
    operands = [draw.choice(_OPERANDS) for _ in range(draw.choice((0, 1, 1, 1, 1, 1, 2, 3)))]
    between = f" {operator} " if operator == "<or>" else " "
    return operator + draw.choice((" ", " ", "  ", "")) + between.join(operands)


def extra_specs(draw: random.Random) -> dict[str, str]:
    """Extra specs of a flavor: those of one filter mostly, so that some hosts match."""
    found: dict[str, str] = {}
    for _ in range(draw.choice((0, 1, 1, 1, 2, 3))):
        kind = draw.random()
        if kind < 0.3:
            key = draw.choice(KEYS)
        elif kind < 0.5:
            key = f"aggregate_instance_extra_specs:{draw.choice(KEYS)}"
        elif kind < 0.9:
            key = f"capabilities:{draw.choice(CAPABILITIES)}"
        else:
            key = draw.choice(_OTHER_KEYS)
        found[key] = extra_spec(draw)
    if draw.random() < 0.1:
        found["hw:maxphysaddr_bits"] = draw.choice(("40", "46", "39.5", "", "wide"))
    if draw.random() < 0.1:
        found["group_policy"] = draw.choice(("none", "isolate"))
    return found


def properties(draw: random.Random, share: float) -> dict[str, str]:
    """Image properties; ``share`` of those that Nova knows."""
    found = {
        name: draw.choice(values) for name, values in CURRENT_PROPERTIES.items() if draw.random() < share
    }
    if draw.random() < 0.3:
        name = draw.choice(list(_LEGACY))
        found[name] = draw.choice(_LEGACY[name])
    if draw.random() < 0.2:
        found[OWN_PROPERTY] = draw.choice(("gold", "silver"))
    items = list(found.items())
    draw.shuffle(items)
    return dict(items)


def query(draw: random.Random) -> str:
    """A query of the hint ``query``, some of which are malformed."""
    kind = draw.random()
    if kind < 0.05:
        return draw.choice(_MALFORMED)
    if kind < 0.1:
        return draw.choice(_EMPTY)
    return json.dumps(_query(draw, draw.choice((1, 1, 1, 2, 3))))


def _query(draw: random.Random, depth: int) -> list[Any]:
    operator = draw.choice(_JSON_OPERATORS if depth == 1 else ("and", "or", "not", "and", "or", "="))
    arguments: list[Any] = []
    for at in range(draw.choice((0, 1, 2, 2, 2, 2, 3))):
        if depth > 1 and draw.random() < 0.7:
            arguments.append(_query(draw, depth - 1))
        elif draw.random() < (0.8 if at == 0 else 0.1):
            arguments.append(draw.choice(_VARIABLES))
        else:
            arguments.append(draw.choice(_JSON_VALUES))
    return [operator, *arguments]
