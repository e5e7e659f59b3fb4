"""What upstream's declarative tests find in the service: the data of its fixtures, made over HTTP.

By the name that the YAML files give a fixture. Names, amounts and variables are those that the files ask
for; the pictures are in upstream's ``placement/tests/functional/fixtures/gabbits.py``.
"""

from collections.abc import Callable
from typing import Any

from support.worlds import Made, World

SHARES = "MISC_SHARES_VIA_AGGREGATE"

_IDENTIFIERS = (
    "RP_UUID", "RP_NAME", "RP_UUID1", "RP_NAME1", "RP_UUID2", "RP_NAME2",
    "PROJECT_ID", "ADMIN_PROJECT_ID", "SERVICE_PROJECT_ID", "USER_ID", "PROJECT_ID_ALT", "USER_ID_ALT",
    "INSTANCE_UUID", "MIGRATION_UUID", "CONSUMER_UUID", "PARENT_PROVIDER_UUID", "ALT_PARENT_PROVIDER_UUID",
)  # fmt: skip


def identifiers(world: World) -> None:
    """What every file may name; nothing is made for it."""
    for variable in _IDENTIFIERS:
        world.name(variable)
    for number in ("", "1", "2"):
        world.name(f"CUSTOM_RES_CLASS{number}", f"CUSTOM_IRON_NFV{number}")


def one_provider_in_use(world: World) -> None:
    """A provider, and three consumers of two users on it."""
    for variable in ("ALT_USER_ID", "ALT_RP_UUID", "ALT_RP_NAME"):
        world.name(variable)
    names = world.variables
    provider = world.provider(names["RP_NAME"], names["RP_UUID"])
    disk = {"total": 2048, "step_size": 10, "min_unit": 10, "max_unit": 1000}
    world.inventory(provider, DISK_GB=disk, VCPU=10)
    project, user, other = names["PROJECT_ID"], names["USER_ID"], names["ALT_USER_ID"]
    world.name("CONSUMER_0", world.allocate(provider, user, project, DISK_GB=1000))
    world.name("CONSUMER_ID", world.allocate(provider, user, project, VCPU=6))
    world.name("ALT_CONSUMER_ID", world.allocate(provider, other, project, DISK_GB=20, VCPU=1))


def shared_storage(world: World) -> None:
    """Two hosts with devices below NUMA nodes, and two stores that both can use."""
    world.name("AGG_UUID")
    cpus: dict[str, Any] = {
        "VCPU": {"total": 24, "allocation_ratio": 16.0},
        "MEMORY_MB": {"total": 128 * 1024, "allocation_ratio": 1.5},
    }
    disk: dict[str, Any] = {"DISK_GB": {"total": 2000, "reserved": 100}}
    everywhere = ("AGG_UUID",)
    world.make(
        Made("cn1", None, cpus, ("HW_CPU_X86_SSE", "HW_CPU_X86_SSE2"), everywhere),
        Made("cn2", None, cpus | disk, (), everywhere),
        Made("ss", None, disk, (SHARES,), everywhere),
        Made("ss2", None, disk, (SHARES,), everywhere),
    )
    for place in ("1_1", "1_2", "2_1", "2_2"):
        world.make(
            Made(f"numa{place}", f"cn{place[0]}"), Made(f"pf{place}", f"numa{place}", {"SRIOV_NET_VF": 8})
        )


def numa_aggregates(world: World) -> None:
    """Two hosts with all they have on NUMA nodes; a store for both, and one for a single NUMA node."""
    for letter in "ABC":
        world.name(f"AGG{letter}_UUID")
    cpus = {"VCPU": {"total": 24, "allocation_ratio": 16.0}}
    disk = {"DISK_GB": {"total": 2000, "reserved": 100}}
    world.make(
        Made("cn1", aggregates=("AGGA_UUID",)),
        Made("cn2", aggregates=("AGGA_UUID", "AGGB_UUID")),
        Made("ss1", None, disk, (SHARES,), ("AGGA_UUID",)),
        Made("ss2", None, disk, (SHARES,), ("AGGC_UUID",)),
        Made("numa1_1", "cn1", cpus, (), ("AGGC_UUID",)),
        Made("numa1_2", "cn1", cpus),
        Made("numa2_1", "cn2", cpus),
        Made("numa2_2", "cn2", cpus),
    )


def numa_network(world: World, first: str | None = None, second: str | None = None) -> None:
    """A host of NUMA nodes and agents, a plain host with network cards, and a store for both.

    ``first`` and ``second`` are what the hosts are below.
    """
    world.name("AGGA_UUID")
    shared = ("AGGA_UUID",)
    memory_of_cn2 = {"total": 2048, "min_unit": 1024, "step_size": 128}
    memory = (
        {"total": 2048, "min_unit": 512, "step_size": 256},
        {"total": 2048, "min_unit": 256, "max_unit": 1024},
    )
    bandwidth = "NET_BW_EGR_KILOBIT_PER_SEC"
    world.make(
        Made("ss1", None, {"DISK_GB": 2000}, (SHARES,), shared),
        Made("cn1", first, {}, ("COMPUTE_VOLUME_MULTI_ATTACH",), shared),
        Made("numa0", "cn1", {"VCPU": 4, "MEMORY_MB": memory[0]}, ("HW_NUMA_ROOT",), used={"VCPU": 2}),
        Made("numa1", "cn1", {"VCPU": 4, "MEMORY_MB": memory[1]}, ("HW_NUMA_ROOT", "CUSTOM_FOO")),
        Made("fpga0", "numa0", {"FPGA": 1}),
        Made("pgpu0", "numa0", {"VGPU": 8}),
        Made("fpga1_0", "numa1", {"FPGA": 1}),
        Made("fpga1_1", "numa1", {"FPGA": 1}),
        Made("sriov_agent", "cn1", {}, ("CUSTOM_VNIC_TYPE_DIRECT",)),
        Made("esn1", "sriov_agent", {bandwidth: 10000}, ("CUSTOM_PHYSNET1",)),
        Made("esn2", "sriov_agent", {bandwidth: 20000}, ("CUSTOM_PHYSNET2",)),
        Made("ovs_agent", "cn1", {}, ("CUSTOM_VNIC_TYPE_NORMAL",)),
        Made("br_int", "ovs_agent", {bandwidth: 1000}, ("CUSTOM_PHYSNET0",)),
        Made(
            "cn2",
            second,
            {"VCPU": 8, "MEMORY_MB": memory_of_cn2, "DISK_GB": 1000},
            ("CUSTOM_FOO",),
            shared,
            {"VCPU": 3},
        ),
    )
    # Of each card the functions on its ports, which are on network 1 and 2 in turn.
    for card, functions in {"1": (4, 4), "2": (2, 2, 2, 2), "3": (8,)}.items():
        world.make(Made(f"nic{card}", "cn2", {}, ("CUSTOM_HW_NIC_ROOT",)))
        for port, number in enumerate(functions):
            network = f"CUSTOM_PHYSNET{port % 2 + 1}"
            world.make(Made(f"pf{card}_{port + 1}", f"nic{card}", {"CUSTOM_VF": number}, (network,)))


def deep_numa_network(world: World) -> None:
    """The same, with both hosts under one provider."""
    world.make(Made("gp1"), Made("p1", "gp1"), Made("p2", "gp1"))
    numa_network(world, "p1", "p2")


def local_storage(world: World) -> None:
    """Three equal hosts, in no aggregate yet."""
    for letter in "ABC":
        world.name(f"AGG{letter}_UUID")
    stock = {"VCPU": 24, "MEMORY_MB": 128 * 1024, "DISK_GB": 2000}
    world.make(*(Made(name, None, stock) for name in ("cn1", "cn2", "cn3")))


def granular(world: World) -> None:
    """Three flat hosts, two stores and a network that share with different pairs of them."""
    for letter in "ABC":
        world.name(f"AGG{letter}")
    flat = {"VCPU": 8, "MEMORY_MB": 4096}
    network = {"SRIOV_NET_VF": 8, "CUSTOM_NET_MBPS": 4000}
    vector = ("HW_CPU_X86_AVX", "HW_CPU_X86_AVX2")
    left = (*vector, "HW_GPU_API_DXVA", "HW_NIC_DCB_PFC", "CUSTOM_FOO")
    middle = (*vector, "HW_CPU_X86_SSE", "HW_NIC_ACCEL_TLS")
    right = ("HW_CPU_X86_MMX", "HW_GPU_API_DXVA", "CUSTOM_DISK_SSD")
    few = {"DISK_GB": 500, "VGPU": {"total": 8, "max_unit": 2}}
    many = {"SRIOV_NET_VF": 16, "CUSTOM_NET_MBPS": 40000}
    for made in (
        Made("cn_left", None, flat | {"DISK_GB": 500, "VGPU": 8} | network, left, ("AGGA",)),
        Made("cn_middle", None, flat | network, middle, ("AGGA", "AGGB")),
        Made("cn_right", None, flat | few, right, ("AGGB", "AGGC")),
        Made("shr_disk_1", None, {"DISK_GB": 1000}, (SHARES, "CUSTOM_DISK_SSD"), ("AGGA",)),
        Made("shr_disk_2", None, {"DISK_GB": 1000}, (SHARES,), ("AGGA", "AGGB")),
        Made("shr_net", None, many, (SHARES,), ("AGGC",)),
    ):
        world.make(Made(**{**vars(made), "variable": made.name.upper()}))


def multi_segment_network(world: World) -> None:
    """Hosts on no segment, the first, the second, and on both with little bandwidth."""
    segments = {0: ("OTHER",), 1: ("MSN_S1",), 2: ("MSN_S2",), 3: ("MSN_S1", "MSN_S2")}
    normal = "CUSTOM_VNIC_TYPE_NORMAL"
    direct = tuple(f"CUSTOM_VNIC_TYPE_{kind}" for kind in ("DIRECT", "DIRECT_PHYSICAL", "MACVTAP"))
    directions = ("NET_BW_EGR_KILOBIT_PER_SEC", "NET_BW_IGR_KILOBIT_PER_SEC")
    packets = {"NET_PACKET_RATE_KILOPACKET_PER_SEC": 1000}
    stock = {"VCPU": 8, "MEMORY_MB": 4096, "DISK_GB": 500}
    for number, networks in segments.items():
        host = f"compute{number}"
        bridge, card = (1000, 1000) if len(networks) > 1 else (5000, 10000)
        ovs, sriov = f"{host}:Open vSwitch agent", f"{host}:NIC Switch agent"
        world.make(
            Made(host, None, stock, variable=host),
            Made(ovs, host, packets, (normal,), variable=f"{host}:ovs_agent"),
            Made(sriov, host, {}, direct, variable=f"{host}:sriov_agent"),
        )
        for place, network in enumerate(networks):
            bridged = f"br_ex{place + 1 if place else ''}"
            traits = (f"CUSTOM_PHYSNET_{network}",)
            world.make(
                Made(
                    f"{ovs}:{bridged.replace('_', '-')}",
                    ovs,
                    dict.fromkeys(directions, bridge),
                    (normal, *traits),
                    variable=f"{host}:{bridged}",
                ),
                Made(
                    f"{sriov}:enp129s0f{place}",
                    sriov,
                    dict.fromkeys(directions, card),
                    (*direct, *traits),
                    variable=f"{host}:pf{place}",
                ),
            )


def _nothing(world: World) -> None:
    """Only identifiers."""


WORLDS: dict[str, Callable[[World], None]] = {
    "APIFixture": _nothing,
    "LegacyRBACPolicyFixture": _nothing,
    "SecureRBACPolicyFixture": _nothing,
    "OpenPolicyFixture": _nothing,
    "CORSFixture": _nothing,
    "AllocationFixture": one_provider_in_use,
    "SharedStorageFixture": shared_storage,
    "NUMAAggregateFixture": numa_aggregates,
    "NUMANetworkFixture": numa_network,
    "DeepNUMANetworkFixture": deep_numa_network,
    "NonSharedStorageFixture": local_storage,
    "GranularFixture": granular,
    "NeutronQoSMultiSegmentFixture": multi_segment_network,
}

SETTINGS: dict[str, dict[str, str]] = {
    "SecureRBACPolicyFixture": {"OS_OSLO_POLICY__ENFORCE_NEW_DEFAULTS": "true"},
    "OpenPolicyFixture": {"OS_OSLO_POLICY__POLICY_FILE": "policy.yaml"},
    "CORSFixture": {
        "OS_CORS__ALLOWED_ORIGIN": "http://valid.example.com",
        "OS_CORS__ALLOW_HEADERS": "openstack-api-version",
    },
}
"""What a fixture configures, beside what all do. The policy file says yes to everybody."""
