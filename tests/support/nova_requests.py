"""Random flavors, images, request specs and aggregates in Nova's vocabulary."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
from hypothesis import strategies as st

from roost.model.request import RequestGroup, all_of
from roost.model.spec import (
    Flavor,
    Image,
    RequestedDestination,
    RequestedNetwork,
    RequestSpec,
    ServerGroup,
)
from roost.scheduler.options import RequestFilterOptions

AGGREGATES = [f"a{number}aaaaaa-0000-4000-8000-00000000000{number}" for number in range(5)]
NODES = [f"b{number}bbbbbb-0000-4000-8000-00000000000{number}" for number in range(4)]
SEGMENTS = [f"c{number}cccccc-0000-4000-8000-00000000000{number}" for number in range(3)]
TRAITS = ["HW_CPU_X86_AVX", "CUSTOM_FAST", "CUSTOM_RED", "HW_CPU_HYPERTHREADING", "OWNER_NOVA"]
CLASSES = ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "VGPU", "CUSTOM_FPGA", "MEM_ENCRYPTION_CONTEXT"]
SUFFIXES = ["", "1", "2", "_x", "-GPU_9"]

YES_NO = ["true", "True", "yes", "1", "on", "false", "no", "0", "maybe", ""]
_MASKS = ["0", "0-1", "^0", "^0-1", "0,2", "1-3,^2", "^1,^3", "0-9", "x", "3-1", "", "^0-9"]

_MATTERS: dict[str, list[str]] = {
    "cpu_policy": ["dedicated", "shared", "mixed", "exclusive"],
    "cpu_thread_policy": ["prefer", "isolate", "require", "never"],
    "cpu_realtime_mask": _MASKS,
    "mem_encryption": YES_NO,
    "mem_encryption_model": ["amd-sev", "amd-sev-es", "amd-sev-snp", "intel-tdx", "none"],
    "tpm_version": ["1.2", "2.0", "3.0"],
    "tpm_model": ["tpm-tis", "tpm-crb", "tpm"],
    "maxphysaddr_mode": ["passthrough", "emulate", "guess"],
    "pci_numa_affinity_policy": ["required", "legacy", "preferred", "socket", "rack"],
    "virtio_packed_ring": YES_NO,
    "ephemeral_encryption": YES_NO,
    "ephemeral_encryption_format": ["plain", "luks", "luksv2", "rot13"],
    "sound_model": ["ich9", "virtio", "kazoo"],
}
"""What flavors say with ``hw:`` and images with ``hw_``. The last of some is a value that there is not."""

_OF_FLAVORS: dict[str, list[str]] = {
    **{f"hw:{name}": values for name, values in _MATTERS.items()},
    "os:secure_boot": ["required", "disabled", "optional", "perhaps"],
    "hw:emulator_threads_policy": ["share", "isolate", "float"],
    "hw:cpu_dedicated_mask": _MASKS,
    "hw:cpu_realtime": YES_NO,
    "hw:pmem": ["4GB", "4GB,16GB", "4GB, 4GB,,ssd-1", ","],
    "hw:tpm_secret_security": ["user", "host", "deployment"],
    "accel:device_profile": ["fpga", ""],
    "group_policy": [*["none", "isolate"] * 3, "both"],
    "quota:vif": ["1"],
}
_OF_IMAGES: dict[str, list[str]] = {
    **{f"hw_{name}": values for name, values in _MATTERS.items()},
    "os_secure_boot": ["required", "disabled", "optional"],
    "hw_firmware_type": ["uefi", "uefi", "bios"],
    "hw_firmware_stateless": YES_NO,
    "hw_machine_type": ["q35", "pc-q35-8.2", "pc"],
    "hw_video_model": ["none", "virtio", "qxl"],
    "hw_disk_bus": ["virtio", "scsi", "lxc"],
    "hw_cdrom_bus": ["sata", "usb"],
    "hw_vif_model": ["virtio", "VirtualVmxnet3", "spapr-vlan", "netfront"],
    "hw_architecture": ["x86_64", "AMD64", "i586", "aarch64"],
    "architecture": ["aarch64", "x86_32"],
    "hw_emulation_architecture": ["ppc64le", "s390x"],
    "hw_viommu_model": ["intel", "auto"],
    "vmware_adaptertype": ["ide", "lsiLogic"],
    "trait:CUSTOM_RED": ["required", "required", "forbidden"],
    "trait:HW_CPU_X86_AVX": ["required"],
    "os_distro": ["debian"],
}


@dataclass(frozen=True)
class Cloud:
    """What the queries depend on beside the request spec; see ``tests/nova/upstream/queries.py``.

    ``nodes`` are dicts with ``node`` (uuid), ``host``, ``nodename`` and ``cell``; ``segments``: aggregates of
    each segment's provider.
    """

    aggregates: list[dict[str, Any]] = field(default_factory=list)
    nodes: list[dict[str, str]] = field(default_factory=list)
    segments: dict[str, list[str]] = field(default_factory=dict)
    service_version: int = 73


def _said(values: dict[str, list[str]], most: int) -> st.SearchStrategy[dict[str, str]]:
    pairs = [(key, value) for key, all_values in values.items() for value in all_values]
    return st.lists(st.sampled_from(pairs), max_size=most).map(dict)


@st.composite
def _extra_specs(draw: st.DrawFn) -> dict[str, str]:
    found = draw(_said(_OF_FLAVORS, 5))
    for _ in range(draw(st.integers(0, 4))):
        suffix = draw(st.sampled_from([*SUFFIXES, "", ""]))
        if draw(st.booleans()):
            amount = draw(st.sampled_from(["1", "4", "0", *"112233" * 5, "two"]))
            found[f"resources{suffix}:{draw(st.sampled_from([*CLASSES * 9, 'NO_SUCH']))}"] = amount
        else:
            said = draw(st.sampled_from([*["required", "required", "forbidden"] * 9, "wanted"]))
            found[f"trait{suffix}:{draw(st.sampled_from(TRAITS))}"] = said
    return found


@st.composite
def _groups(draw: st.DrawFn) -> tuple[RequestGroup, ...]:
    suffixes = draw(st.lists(st.sampled_from(["port-1", "port-2", "pci-0", "_x"]), max_size=2, unique=True))
    return tuple(
        RequestGroup(
            {
                draw(st.sampled_from(["NET_BW_EGR_KILOBIT_PER_SEC", "CUSTOM_FPGA", "VCPU"])): draw(
                    st.integers(1, 3)
                )
            },
            suffix,
            all_of(*draw(st.lists(st.sampled_from(TRAITS), max_size=1))),
        )
        for suffix in suffixes
    )


_uuids = st.sampled_from(AGGREGATES)
_networks = st.lists(
    st.builds(
        lambda kind, number, segments, managed: RequestedNetwork(
            **{kind: f"{kind}-{number}"}, segments=tuple(segments), remote_managed=managed
        ),
        st.sampled_from(["network_id", "port_id"]),
        st.integers(0, 9),
        st.lists(st.sampled_from(SEGMENTS), max_size=2, unique=True),
        st.booleans(),
    ),
    max_size=2,
    unique_by=lambda network: network.port_id or network.network_id,
).map(tuple)


@st.composite
def _destinations(draw: st.DrawFn) -> RequestedDestination:
    return RequestedDestination(
        host=draw(st.none() | st.sampled_from(["h0", "h1", "farm", "nowhere"])),
        node=draw(st.none() | st.sampled_from(["n0", "n1", "n2"])),
        cell=draw(st.none() | st.sampled_from(["cell1", "cell2"])),
        aggregates=tuple(draw(st.lists(st.frozensets(_uuids, min_size=1, max_size=2), max_size=2))),
        forbidden_aggregates=draw(st.frozensets(_uuids, max_size=2)),
    )


@st.composite
def requests(draw: st.DrawFn) -> RequestSpec:
    """A request spec with few or many wishes; some contradict each other or have values that there are
    not."""
    wishes: dict[str, Any] = {}
    for wish in draw(st.lists(st.sampled_from(list(_WISHES)), max_size=4, unique=True)):
        wishes[wish] = draw(_WISHES[wish])
    groups = wishes.get("requested_resources", ())
    return RequestSpec(
        project_id=draw(st.sampled_from(["alpha", "beta"])),
        user_id="u",
        flavor=Flavor(
            "f",
            draw(st.sampled_from([4, 1, 2])),
            draw(st.sampled_from([512, 0, 2048])),
            draw(st.sampled_from([0, 10])),
            draw(_extra_specs()),
            draw(st.sampled_from([0, 5])),
            draw(st.sampled_from([0, 1, 1024, 1025])),
        ),
        pci_groups=frozenset(group.suffix for group in groups if group.suffix == "pci-0"),
        **wishes,
    )


_WISHES: dict[str, st.SearchStrategy[Any]] = {
    "image": st.builds(
        Image,
        st.just("22222222-2222-4222-8222-222222222222"),
        st.sampled_from(["qcow2", "raw", "iso", "ploop", "rbd"]),
        _said(_OF_IMAGES, 6),
    ),
    "volume_backed": st.booleans(),
    "availability_zone": st.sampled_from(["az1", "az2", "az1", "az2", "nova"]),
    "requested_resources": _groups(),
    "root_required": st.frozensets(st.sampled_from(TRAITS), max_size=2),
    "root_forbidden": st.frozensets(st.sampled_from(["CUSTOM_BLUE"]), max_size=1),
    "same_subtree": st.sampled_from([(), (frozenset({"1", "2"}),), (frozenset({"port-1", "port-2"}),)]),
    "requested_networks": _networks,
    "requested_destination": _destinations(),
    "force_hosts": st.sampled_from([("h0",), ("farm",), ("h0",), ("h0", "h1")]),
    "force_nodes": st.sampled_from([("n1",), ("n0", "n2")]),
    "ignore_hosts": st.sampled_from([frozenset({"h0"})]),
    "group": st.just(ServerGroup("g", "affinity")),
    "scheduler_hints": st.sampled_from([{"same_host": ("i",)}, {"query": ("[]",)}, {"different_host": ()}]),
}


@st.composite
def clouds(draw: st.DrawFn) -> Cloud:
    """A few nodes, of which some share a host, and aggregates with metadata that request filters read."""
    keys = st.sampled_from(
        [
            "availability_zone",
            "filter_tenant_id",
            "filter_tenant_id_2",
            "trait:CUSTOM_RED",
            "trait:CUSTOM_FAST",
        ]
    )
    values = st.sampled_from(["az1", "az2", "alpha", "beta", "required", "required", "nova"])
    return Cloud(
        [
            {"uuid": uuid, "metadata": draw(st.dictionaries(keys, values, max_size=2))}
            for uuid in draw(st.lists(_uuids, max_size=5, unique=True))
        ],
        [
            {"node": NODES[0], "host": "h0", "nodename": "n0", "cell": "cell1"},
            {"node": NODES[1], "host": "h1", "nodename": "h1", "cell": "cell2"},
            {"node": NODES[2], "host": "farm", "nodename": "n1", "cell": "cell1"},
            {"node": NODES[3], "host": "farm", "nodename": "n2", "cell": "cell1"},
        ],
        {segment: draw(st.lists(_uuids, max_size=2, unique=True)) for segment in SEGMENTS},
        draw(st.sampled_from([72, 73])),
    )


_flags = st.sampled_from([False, True])
filter_options = st.builds(
    RequestFilterOptions,
    limit_tenants_to_placement_aggregate=_flags,
    placement_aggregate_required_for_tenants=_flags,
    query_placement_for_image_type_support=_flags,
    enable_isolated_aggregate_filtering=_flags,
    image_metadata_prefilter=_flags,
    query_placement_for_routed_network_aggregates=_flags,
    max_placement_results=st.sampled_from([1, 1000]),
)


def plain(value: object) -> Any:
    """A request spec as plain data, sets as sorted lists."""
    return msgspec.to_builtins(value, order="deterministic")
