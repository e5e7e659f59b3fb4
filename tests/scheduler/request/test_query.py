"""From a request spec to a candidate query."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.model.request import CandidateQuery, RequestGroup, all_of
from roost.model.spec import Flavor, Image, ServerGroup
from roost.model.vocabulary import DISABLED_TRAIT, MAX_INT
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import RequestFilterOptions, SchedulerOptions, Workarounds
from roost.scheduler.request.demand.numa_groups import NumaModel
from roost.scheduler.request.query import candidate_query, placement_queries
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts
from support.clouds import spec

GPU = RequestGroup({"CUSTOM_GPU": 1}, "_port")


def query(*args: int, **more: Any) -> CandidateQuery:
    found = candidate_query(spec(*args, **more), NodeTable(), SchedulerOptions())
    assert found.root_forbidden == {DISABLED_TRAIT}
    return msgspec.structs.replace(found, root_forbidden=frozenset())


def asked(*groups: RequestGroup, isolate: bool = False) -> CandidateQuery:
    return CandidateQuery(groups, isolate=isolate)


def test_flavor_alone() -> None:
    assert query(2, 512, 5) == asked(RequestGroup({"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 5}))


def test_nothing_is_asked_of_what_the_flavor_has_none_of() -> None:
    assert query(2, 512, 0) == asked(RequestGroup({"VCPU": 2, "MEMORY_MB": 512}))


def test_extra_specs_override_the_flavor_and_0_takes_it_out() -> None:
    found = query(2, 512, 5, extra_specs={"resources:VCPU": "4", "resources:DISK_GB": "0"})
    assert found == asked(RequestGroup({"MEMORY_MB": 512, "VCPU": 4}))


@pytest.mark.parametrize(("amount", "groups"), [("4", {"PCPU": 4}), ("0", {})])
def test_named_pcpu_takes_the_place_of_the_flavors_processors(amount: str, groups: dict[str, int]) -> None:
    found = query(4, 512, 0, extra_specs={"resources:PCPU": amount})
    assert found == asked(RequestGroup({"MEMORY_MB": 512, **groups}))


TWO = {"resources1:VCPU": "1", "resources_b:VCPU": "1"}


def test_class_in_a_granular_group_is_taken_out_of_the_flavors_own() -> None:
    found = query(2, 512, 5, extra_specs={**TWO, "group_policy": "none"})
    assert found == asked(
        RequestGroup({"MEMORY_MB": 512, "DISK_GB": 5}),
        RequestGroup({"VCPU": 1}, "1"),
        RequestGroup({"VCPU": 1}, "_b"),
    )


def test_group_of_zeros_is_left_out() -> None:
    found = query(2, 512, 5, extra_specs={"resources1:VCPU": "0"})
    assert found == asked(RequestGroup({"MEMORY_MB": 512, "DISK_GB": 5}))


def test_traits_of_flavor_and_image() -> None:
    found = query(
        1,
        512,
        0,
        extra_specs={
            "trait:CUSTOM_A": "required",
            "trait:CUSTOM_B": "forbidden",
            "resources_x:CUSTOM_GPU": "1",
            "trait_x:CUSTOM_C": "required",
        },
        required_traits=frozenset({"CUSTOM_D"}),
        forbidden_traits=frozenset({"CUSTOM_E"}),
    )
    assert found == asked(
        RequestGroup(
            {"VCPU": 1, "MEMORY_MB": 512},
            required=all_of("CUSTOM_A", "CUSTOM_D"),
            forbidden=frozenset({"CUSTOM_B", "CUSTOM_E"}),
        ),
        RequestGroup({"CUSTOM_GPU": 1}, "_x", all_of("CUSTOM_C")),
    )


def test_requested_resources_and_group_policy() -> None:
    found = query(1, 512, 0, requested_resources=(GPU,), extra_specs={"group_policy": "isolate"})
    assert found == asked(RequestGroup({"VCPU": 1, "MEMORY_MB": 512}), GPU, isolate=True)


def test_other_extra_specs_are_not_for_placement() -> None:
    extra = {"hw:numa_nodes": "2", "aggregate_instance_extra_specs:ssd": "yes", "quota": "1"}
    assert query(2, 512, 0, extra_specs=extra) == query(2, 512, 0)


def test_disks_are_rounded_up_and_a_volume_is_no_disk_of_the_host() -> None:
    flavor = Flavor("f", 1, 512, 10, ephemeral_gb=5, swap_mb=1025)
    assert query(flavor=flavor) == asked(RequestGroup({"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 17}))
    found = query(flavor=flavor, volume_backed=True)
    assert found == asked(RequestGroup({"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 7}))


PINNING = [
    ({"hw:cpu_policy": "dedicated"}, {}, {"PCPU": 4}, None),
    ({"hw:cpu_policy": "shared"}, {}, {"VCPU": 4}, None),
    ({}, {"hw_cpu_policy": "dedicated"}, {"PCPU": 4}, None),
    ({"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate"}, {}, {"PCPU": 5}, None),
    ({"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "^0"}, {}, {"VCPU": 1, "PCPU": 3}, None),
    ({"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "1,3"}, {}, {"VCPU": 2, "PCPU": 2}, None),
    (
        {"hw:cpu_policy": "mixed", "hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "2-3"},
        {},
        {"VCPU": 2, "PCPU": 2},
        None,
    ),
    ({"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"}, {}, {"PCPU": 4}, True),
    ({"hw:cpu_policy": "dedicated"}, {"hw_cpu_thread_policy": "isolate"}, {"PCPU": 4}, False),
]


@pytest.mark.parametrize(("extra_specs", "properties", "resources", "hyperthreading"), PINNING)
def test_processors(
    extra_specs: dict[str, str],
    properties: dict[str, str],
    resources: dict[str, int],
    hyperthreading: bool | None,
) -> None:
    [group] = query(4, 512, 0, extra_specs=extra_specs, image=Image(properties=properties)).groups
    assert group.resources == {"MEMORY_MB": 512, **resources}
    assert group.required == (all_of("HW_CPU_HYPERTHREADING") if hyperthreading else ())
    assert group.forbidden == (frozenset({"HW_CPU_HYPERTHREADING"}) if hyperthreading is False else set())


def test_dedicated_processors_may_also_be_vcpu() -> None:
    wanted = spec(4, 512, 0, extra_specs={"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"})
    found = placement_queries(wanted, FilterFacts(NodeTable(), SchedulerOptions()))
    [fallback] = found.fallbacks
    assert fallback.groups == (RequestGroup({"VCPU": 4, "MEMORY_MB": 512}),)
    assert fallback.root_forbidden == {DISABLED_TRAIT}
    options = SchedulerOptions(workarounds=Workarounds(disable_fallback_pcpu_query=True))
    assert placement_queries(wanted, FilterFacts(NodeTable(), options)).fallbacks == ()
    assert placement_queries(spec(4), FilterFacts(NodeTable(), SchedulerOptions())).fallbacks == ()


UEFI = {"hw_firmware_type": "uefi"}
FEATURES: list[tuple[dict[str, str], dict[str, str], dict[str, int], list[str]]] = [
    ({"hw:mem_encryption": "true"}, UEFI, {"MEM_ENCRYPTION_CONTEXT": 1}, ["HW_CPU_X86_AMD_SEV"]),
    (
        {"hw:mem_encryption_model": "amd-sev-es"},
        {**UEFI, "hw_mem_encryption": "1"},
        {"MEM_ENCRYPTION_CONTEXT": 1},
        ["HW_CPU_X86_AMD_SEV_ES"],
    ),
    (
        {"hw:pmem": "4GB, ssd-1,4GB"},
        {},
        {"CUSTOM_PMEM_NAMESPACE_4GB": 2, "CUSTOM_PMEM_NAMESPACE_SSD_1": 1},
        [],
    ),
    ({"hw:tpm_version": "1.2"}, {}, {}, ["COMPUTE_SECURITY_TPM_TIS", "COMPUTE_SECURITY_TPM_1_2"]),
    (
        {"hw:tpm_version": "2.0"},
        {"hw_tpm_model": "tpm-crb"},
        {},
        ["COMPUTE_SECURITY_TPM_CRB", "COMPUTE_SECURITY_TPM_2_0"],
    ),
    ({"os:secure_boot": "required"}, {}, {}, ["COMPUTE_SECURITY_UEFI_SECURE_BOOT"]),
    ({"os:secure_boot": "optional"}, {}, {}, []),
    ({"hw:maxphysaddr_mode": "emulate"}, {}, {}, ["COMPUTE_ADDRESS_SPACE_EMULATED"]),
    ({}, {"hw_maxphysaddr_mode": "passthrough"}, {}, ["COMPUTE_ADDRESS_SPACE_PASSTHROUGH"]),
    ({"hw:pci_numa_affinity_policy": "socket"}, {}, {}, ["COMPUTE_SOCKET_PCI_NUMA_AFFINITY"]),
    ({}, {**UEFI, "hw_firmware_stateless": "yes"}, {}, ["COMPUTE_SECURITY_STATELESS_FIRMWARE"]),
    ({}, {"hw_firmware_stateless": "yes"}, {}, []),
    ({}, {"trait:CUSTOM_RED": "required", "trait:CUSTOM_FAST": "no"}, {}, ["CUSTOM_RED"]),
]


@pytest.mark.parametrize(("extra_specs", "properties", "resources", "traits"), FEATURES)
def test_features_are_resources_and_traits(
    extra_specs: dict[str, str], properties: dict[str, str], resources: dict[str, int], traits: list[str]
) -> None:
    [group] = query(1, 512, 0, extra_specs=extra_specs, image=Image(properties=properties)).groups
    assert group.resources == {"VCPU": 1, "MEMORY_MB": 512, **resources}
    assert group.required == all_of(*sorted(traits))


def test_groups_without_resources_serve_in_a_subtree() -> None:
    extra = {"resources1:CUSTOM_GPU": "1", "trait2:CUSTOM_FAST": "required", "group_policy": "none"}
    together = (frozenset({"1", "2"}),)
    found = query(1, 512, 0, extra_specs=extra, same_subtree=together)
    assert found.same_subtree == together
    assert found.groups[1:] == (
        RequestGroup({"CUSTOM_GPU": 1}, "1"),
        RequestGroup({}, "2", all_of("CUSTOM_FAST")),
    )


def test_root_traits() -> None:
    found = query(1, 512, 0, root_required=frozenset({"CUSTOM_A"}))
    assert found.root_required == {"CUSTOM_A"}


BAD = [
    ({"extra_specs": {"resources:VCPU": "two"}}, "resources:VCPU='two' is not a number"),
    ({"extra_specs": {"resources:VCPU": "-1"}}, "resources:VCPU='-1' is negative"),
    ({"extra_specs": {"resources:VCPU": "9" * 5000}}, "has more than 20 digits"),
    ({"extra_specs": {"resources:VCPU": str(MAX_INT + 1)}}, "VCPU=2147483648 is not from 1 to 2147483647"),
    ({"extra_specs": {"resources:VCPU,X": "1"}}, "'VCPU,X' is no name of a resource class"),
    ({"extra_specs": {"trait:CUSTOM_A": "maybe"}}, "trait:CUSTOM_A='maybe' is neither"),
    ({"extra_specs": {"trait:!X": "required"}}, "'!X' is no name of a trait"),
    ({"extra_specs": {"group_policy": "both"}}, "group_policy='both' is neither"),
    ({"extra_specs": {"trait1:CUSTOM_A": "required"}}, "request group '1' asks for traits"),
    ({"same_subtree": (frozenset({"1"}),)}, "same_subtree names '1', which is no suffix"),
    (
        {"extra_specs": {"resources1:VCPU": "1", "resources2:VCPU": "1"}},
        "flavor small has 2 request groups with suffixes: set group_policy to none or isolate",
    ),
    ({"extra_specs": {"hw:cpu_policy": "exclusive"}}, "hw:cpu_policy='exclusive' is none of dedicated"),
    ({"image": Image("i", properties={"hw_cpu_policy": "x"})}, "image i: hw_cpu_policy='x' is none of"),
    (
        {"extra_specs": {"hw:cpu_policy": "shared"}, "image": Image("i", properties={"hw_cpu_policy":
        "mixed"})}, "flavor small says hw:cpu_policy='shared', image i says hw_cpu_policy='mixed'",
    ),
    ({"extra_specs": {"hw:cpu_policy": "mixed"}}, "hw:cpu_policy='mixed' needs hw:cpu_dedicated_mask"),
    (
        {"extra_specs": {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-x"}},
        "hw:cpu_dedicated_mask='0-x' names no processors: '0-x' is no number or range",
    ),
    (
        {"extra_specs": {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-999999999"}},
        "is no range of up to 10000 processors",
    ),
    ({"extra_specs": {"hw:mem_encryption": "1"}}, "the image: hw_firmware_type must be uefi"),
    (
        {"extra_specs": {"hw:tpm_version": "1.2", "hw:tpm_model": "tpm-crb"}},
        "hw:tpm_model='tpm-crb' needs version 2.0, not 1.2",
    ),
    (
        {"extra_specs": {"hw:virtio_packed_ring": "1"},
         "image": Image(properties={"hw_virtio_packed_ring": "0"})},
        "flavor small says hw:virtio_packed_ring='1', the image says hw_virtio_packed_ring='0'",
    ),
    (
        {"extra_specs": {"resources1:VCPU": "1", "resources1:MEMORY_MB": "1", "resources1:DISK_GB": "1"},
         "required_traits": frozenset({"CUSTOM_A"})},
        "the request asks for traits",
    ),
    ({"extra_specs": {"resources_port:VCPU": "1"}, "requested_resources": (GPU,)}, "have the suffix '_port'"),
    (
        {"group": ServerGroup("g1", "scattered")},
        "server group g1: policy 'scattered' is none of affinity, anti-affinity, soft-affinity, soft-anti-af"
        "finity",
    ),
    ({"requested_resources": (RequestGroup({"VCPU": 1}),)}, "have the suffix ''"),
    ({"requested_resources": (RequestGroup({"VCPU": 0}, "x"),)}, "VCPU=0 is not from 1"),
    ({"requested_resources": (RequestGroup({}, "x"),)}, "request group 'x' asks for traits or places"),
    ({"requested_resources": (RequestGroup({"VCPU": 1}, "a b"),)}, "a suffix is"),
    (
        {"extra_specs": {"trait:CUSTOM_A": "required"}, "forbidden_traits": frozenset({"CUSTOM_A"})},
        "CUSTOM_A is both required and forbidden",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("more", "text"), BAD)
def test_bad_request_spec_names_key_and_value(more: dict[str, Any], text: str) -> None:
    with pytest.raises(BadRequestSpec, match=re.escape(text)):
        query(1, 512, 5, **more)


def test_flavor_without_resources() -> None:
    with pytest.raises(BadRequestSpec, match="asks for no resources"):
        query(0, 0, 0)


@given(st.dictionaries(st.text(max_size=20) | st.just("resources:VCPU"), st.text(max_size=8), max_size=4))
def test_whatever_extra_specs_say_the_query_can_be_sent_or_is_refused(extra: dict[str, str]) -> None:
    try:
        found = query(1, 512, 5, extra_specs=extra)
    except BadRequestSpec:
        return
    for group in found.groups:
        assert group.resources
        assert all(0 < amount <= MAX_INT for amount in group.resources.values())


def with_model(model: NumaModel, *args: int, **more: Any) -> list[CandidateQuery]:
    """Return all queries for a request where the NUMA nodes of hosts are described in this way."""
    options = SchedulerOptions(request_filters=RequestFilterOptions(numa_model=model))
    found = placement_queries(spec(*args, **more), FilterFacts(NodeTable(), options))
    return [
        msgspec.structs.replace(each, root_forbidden=each.root_forbidden - {DISABLED_TRAIT})
        for each in (found.query, *found.fallbacks)
    ]


def cell(number: int, **resources: int) -> RequestGroup:
    return RequestGroup(resources, f"_NUMA{number}", all_of("HW_NUMA_ROOT"))


TWO_NODES = {"hw:numa_nodes": "2"}
DISK = RequestGroup({"DISK_GB": 5})


def test_a_request_without_numa_nodes_may_be_split_where_hosts_are_trees() -> None:
    group = RequestGroup({"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 5})
    for model in ("trees", "both"):
        [found] = with_model(model, 2, 512, 5)
        assert found == CandidateQuery((group,), can_split=("MEMORY_MB", "VCPU"))
    assert with_model("objects", 2, 512, 5) == [CandidateQuery((group,))]
    port = RequestGroup({"MEMORY_MB": 1}, "_port")
    [found] = with_model("trees", 2, 512, requested_resources=(port,))
    assert found.can_split == ("VCPU",)


def test_each_numa_node_is_a_group_and_none_shares_a_provider_with_another() -> None:
    port = RequestGroup({"NET_BW_EGR_KILOBIT_PER_SEC": 1}, "_port")
    [found] = with_model("trees", 4, 512, 5, extra_specs=TWO_NODES, requested_resources=(port,))
    assert found == CandidateQuery(
        (DISK, port, cell(0, VCPU=2, MEMORY_MB=256), cell(1, VCPU=2, MEMORY_MB=256)),
        isolated=frozenset(("_NUMA0", "_NUMA1")),
    )
    uneven = {"hw:numa_cpus.0": "0", "hw:numa_cpus.1": "1-3", "hw:numa_mem.0": "128", "hw:numa_mem.1": "384"}
    [found] = with_model("trees", 4, 512, 5, extra_specs=TWO_NODES | uneven)
    assert found.groups == (DISK, cell(0, VCPU=1, MEMORY_MB=128), cell(1, VCPU=3, MEMORY_MB=384))


def test_dedicated_processors_and_those_of_emulator_threads_are_in_the_nodes() -> None:
    specs = TWO_NODES | {"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate"}
    [found] = with_model("trees", 4, 512, 5, extra_specs=specs)
    assert found.groups == (DISK, cell(0, PCPU=3, MEMORY_MB=256), cell(1, PCPU=2, MEMORY_MB=256))
    mixed = TWO_NODES | {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "1-2"}
    [found] = with_model("trees", 4, 512, 0, extra_specs=mixed | {"hw:cpu_thread_policy": "isolate"})
    assert found.groups == tuple(cell(number, VCPU=1, PCPU=1, MEMORY_MB=256) for number in (0, 1))
    assert found.root_forbidden == {"HW_CPU_HYPERTHREADING"}, "no group is left that could forbid it"


@pytest.mark.parametrize(
    ("size", "classes"),
    [
        ("small", [{"MEMORY_MB": 1024}]),
        ("4", [{"MEMORY_MB": 1024}]),
        ("2048", [{"CUSTOM_HUGEPAGES_2048KB": 512}]),
        ("1GB", [{"CUSTOM_HUGEPAGES_1048576KB": 1}]),
        ("large", [{"CUSTOM_HUGEPAGES_1048576KB": 1}, {"CUSTOM_HUGEPAGES_2048KB": 512}]),
        (
            "any",
            [{"CUSTOM_HUGEPAGES_1048576KB": 1}, {"CUSTOM_HUGEPAGES_2048KB": 512}, {"MEMORY_MB": 1024}],
        ),
    ],
)
def test_memory_in_huge_pages_is_a_number_of_pages_of_each_size_that_may_serve(
    size: str, classes: list[dict[str, int]]
) -> None:
    found = with_model("trees", 4, 1024, 5, extra_specs={"hw:mem_page_size": size})
    assert [each.groups for each in found] == [(DISK, cell(0, VCPU=4, **memory)) for memory in classes]


def test_memory_that_is_no_multiple_of_the_page_is_refused() -> None:
    text = "the memory of a NUMA node, 513 MiB, is no multiple of a page of 2048 KiB or 1048576 KiB"
    with pytest.raises(BadRequestSpec, match=text):
        with_model("trees", 4, 513, 5, extra_specs={"hw:mem_page_size": "large"})


def test_nodes_are_asked_for_as_trees_and_then_as_reported_where_hosts_may_be_either() -> None:
    trees, plain, shared = with_model("both", 4, 512, 5, extra_specs={"hw:cpu_policy": "dedicated"})
    assert trees.groups == (DISK, cell(0, PCPU=4, MEMORY_MB=512))
    assert plain.groups == (RequestGroup({"PCPU": 4, "MEMORY_MB": 512, "DISK_GB": 5}),)
    assert shared.groups == (RequestGroup({"VCPU": 4, "MEMORY_MB": 512, "DISK_GB": 5}),)
    assert not (plain.can_split or shared.can_split or trees.can_split)


def test_what_a_flavor_names_itself_is_not_asked_of_the_nodes() -> None:
    specs = TWO_NODES | {"resources:MEMORY_MB": "100"}
    [found] = with_model("trees", 4, 512, 5, extra_specs=specs)
    assert found.groups == (RequestGroup({"MEMORY_MB": 100, "DISK_GB": 5}), cell(0, VCPU=2), cell(1, VCPU=2))
    with pytest.raises(BadRequestSpec, match="two request groups have the suffix '_NUMA1'"):
        with_model("trees", 4, 512, extra_specs=TWO_NODES | {"resources_NUMA1:DISK_GB": "1"})
