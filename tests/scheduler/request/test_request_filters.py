"""Request filters: what they add to a query."""

import re

import pytest

from roost.model.aggregate import HostAggregate
from roost.model.node import NodeReport
from roost.model.request import CandidateQuery, RequestGroup, all_of
from roost.model.spec import Image, RequestedDestination, RequestedNetwork
from roost.model.vocabulary import DISABLED_TRAIT
from roost.scheduler.errors import BadRequestSpec, RequestFilterFailed
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import RequestFilterOptions, SchedulerOptions
from roost.scheduler.request.accelerator_options import AcceleratorOptions, ProfileGroup
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts
from support.clouds import report, spec, table_of

METADATA = [
    {"availability_zone": "az1"},
    {"availability_zone": "az1", "filter_tenant_id2": "project"},
    {"availability_zone": "nova", "trait:CUSTOM_RED": "required"},
]
AGGREGATES = [HostAggregate(f"agg{number}", "", metadata) for number, metadata in enumerate(METADATA)]


def table(*service_versions: int) -> NodeTable:
    """A table of three hosts, one in each aggregate, and a service with two nodes."""
    versions = iter(service_versions or (0, 0, 0))
    reports: list[NodeReport] = [
        report(f"host{number}", f"node{number}", aggregates=(aggregate,), service_version=next(versions, 73))
        for number, aggregate in enumerate(AGGREGATES)
    ]
    farm = {"service_version": next(versions, 73), "cell": "cell2"}
    reports += [report("farm", f"farm-{name}", nodename=name, **farm) for name in ("n1", "n2")]
    return table_of(reports)


PORT = RequestGroup({"CUSTOM_GPU": 1}, "_port")
PROFILES = AcceleratorOptions({"fpga": (ProfileGroup({"FPGA": 1}),)})
EXTRA = "extra_specs"


def asked(
    filters: RequestFilterOptions | None = None,
    of: NodeTable | None = None,
    aggregates: dict[str, frozenset[str]] | None = None,
    **wishes: object,
) -> CandidateQuery:
    options = SchedulerOptions(request_filters=filters or RequestFilterOptions(), accelerators=PROFILES)
    facts = FilterFacts(of or table(), options, aggregates=aggregates or {})
    return placement_queries(spec(**wishes), facts).query


def root(query: CandidateQuery) -> frozenset[str]:
    return query.root_required


def member_of(query: CandidateQuery) -> tuple[frozenset[str], ...]:
    unsuffixed, *others = query.groups
    assert not any(group.member_of or group.forbidden_aggregates for group in others)
    return unsuffixed.member_of


def test_disabled_hosts_are_left_out() -> None:
    assert asked().root_forbidden == {DISABLED_TRAIT}
    assert root(asked()) == frozenset()


def test_zone_is_any_of_its_aggregates() -> None:
    assert member_of(asked(availability_zone="az1", requested_resources=(PORT,))) == (
        frozenset({"agg0", "agg1"}),
    )


@pytest.mark.parametrize("zone", [None, "nova", "unheard of"])
def test_zone_is_left_to_the_filter_where_placement_cannot_tell(zone: str | None) -> None:
    assert member_of(asked(availability_zone=zone)) == ()


GRANULAR = {"resources1:VCPU": "1", "resources1:MEMORY_MB": "1", "resources1:DISK_GB": "1"}


def test_hosts_are_found_by_aggregates_where_no_group_spans_the_tree() -> None:
    # A device below a root that is in the zone is itself in no aggregate.
    of = table()
    wanted = spec(extra_specs=GRANULAR, availability_zone="az1")
    found = placement_queries(wanted, FilterFacts(of, SchedulerOptions()))
    assert not any(group.member_of for group in found.query.groups)
    [place] = found.places
    assert (place.step, [of.hosts[node] for node in place.nodes], place.allowed) == (
        "aggregates",
        ["host0", "host1"],
        True,
    )


def test_requested_host_is_its_tree() -> None:
    unsuffixed, port = asked(requested_host="host1", requested_resources=(PORT,)).groups
    assert (unsuffixed.in_tree, port.in_tree) == ("node1", None)
    alone = asked(requested_host="host1", extra_specs=GRANULAR)
    assert [group.in_tree for group in alone.groups] == ["node1"]


@pytest.mark.parametrize(
    ("wishes", "node"),
    [
        ({"requested_destination": RequestedDestination(node="n2")}, "farm-n2"),
        ({"requested_destination": RequestedDestination(host="farm", node="n1")}, "farm-n1"),
        ({"requested_destination": RequestedDestination(host="farm")}, None),
        ({"force_hosts": ("host0",)}, "node0"),
        ({"force_hosts": ("farm",), "force_nodes": ("n2",)}, "farm-n2"),
        ({"force_hosts": ("host0",), "requested_destination": RequestedDestination(host="host1")}, "node1"),
        ({"force_hosts": ("host0", "host1")}, None),
    ],
)
def test_host_and_node_are_a_tree_if_they_are_one(wishes: dict[str, object], node: str | None) -> None:
    assert asked(**wishes).groups[0].in_tree == node


@pytest.mark.parametrize(
    ("wishes", "text"),
    [
        ({"requested_host": "host9"}, "requested host 'host9' is unknown"),
        ({"force_nodes": ("n9",)}, "requested node 'n9' is unknown"),
        ({"force_hosts": ("host0",), "force_nodes": ("n1",)}, "requested host 'host0' node 'n1' is unknown"),
        (
            {"requested_destination": RequestedDestination(host="host0", cell="cell2")},
            "requested host 'host0' cell 'cell2' is unknown",
        ),
    ],
)
def test_unknown_hosts_and_nodes_are_refused(wishes: dict[str, object], text: str) -> None:
    with pytest.raises(BadRequestSpec, match=re.escape(text)):
        asked(**wishes)


def test_aggregates_of_the_destination() -> None:
    place = RequestedDestination(aggregates=all_of("a", "b"), forbidden_aggregates=frozenset({"c"}))
    [group] = asked(requested_destination=place).groups
    assert (group.member_of, group.forbidden_aggregates) == (all_of("a", "b"), {"c"})


def test_projects_with_aggregates_get_only_these() -> None:
    limited = RequestFilterOptions(limit_tenants_to_placement_aggregate=True)
    demanded = RequestFilterOptions(True, placement_aggregate_required_for_tenants=True)
    assert member_of(asked(limited)) == all_of("agg1")
    assert member_of(asked(limited, project_id="other")) == ()
    assert member_of(asked(demanded)) == all_of("agg1")
    with pytest.raises(RequestFilterFailed, match="no aggregate is for project 'other'"):
        asked(demanded, project_id="other")
    assert member_of(asked()) == ()


def test_isolated_aggregates_are_for_requests_that_require_the_trait() -> None:
    isolating = RequestFilterOptions(enable_isolated_aggregate_filtering=True)
    assert asked(isolating).groups[0].forbidden_aggregates == {"agg2"}
    assert not asked(isolating, extra_specs={"trait:CUSTOM_RED": "required"}).groups[0].forbidden_aggregates
    assert not asked().groups[0].forbidden_aggregates


def test_segments_of_routed_networks() -> None:
    routed = RequestFilterOptions(query_placement_for_routed_network_aggregates=True)
    networks = (
        RequestedNetwork(network_id="n", segments=("s1", "s2")),
        RequestedNetwork(port_id="p", segments=("s2",)),
        RequestedNetwork(network_id="flat"),
    )
    of = {"s1": frozenset({"a"}), "s2": frozenset({"b", "c"})}
    found = asked(routed, aggregates=of, requested_networks=networks)
    assert member_of(found) == (frozenset({"a", "b", "c"}), frozenset({"b", "c"}))
    with pytest.raises(RequestFilterFailed, match="network n: segment s1 is in no aggregate"):
        asked(routed, requested_networks=networks)
    assert member_of(asked(requested_networks=networks)) == ()


IMAGE = Image("i", "qcow2", {"hw_disk_bus": "virtio", "hw_vif_model": "spapr-vlan", "architecture": "amd64"})
TYPES = RequestFilterOptions(query_placement_for_image_type_support=True)
METADATA_OPTION = RequestFilterOptions(image_metadata_prefilter=True)
VTPM = {"hw:tpm_version": "2.0"}
ROOT_TRAITS = [
    (TYPES, {"image": IMAGE}, {"COMPUTE_IMAGE_TYPE_QCOW2"}),
    (TYPES, {"image": IMAGE, "volume_backed": True}, set()),
    (TYPES, {"image": Image("i", "papyrus")}, set()),
    (
        METADATA_OPTION,
        {"image": IMAGE},
        {"COMPUTE_STORAGE_BUS_VIRTIO", "COMPUTE_NET_VIF_MODEL_SPAPR_VLAN", "HW_ARCH_X86_64"},
    ),
    (METADATA_OPTION, {"image": Image("i", None, {**IMAGE.properties, "hw_video_model": "tv"})}, set()),
    (None, {"image": IMAGE}, set()),
    (None, {EXTRA: {"accel:device_profile": "fpga"}}, {"COMPUTE_ACCELERATORS"}),
    (None, {EXTRA: {"hw:virtio_packed_ring": "yes"}}, {"COMPUTE_NET_VIRTIO_PACKED"}),
    (None, {"image": Image("i", None, {"hw_virtio_packed_ring": "1"})}, {"COMPUTE_NET_VIRTIO_PACKED"}),
    (
        None,
        {"requested_networks": (RequestedNetwork(port_id="p", remote_managed=True),)},
        {"COMPUTE_REMOTE_MANAGED_PORTS"},
    ),
    (None, {EXTRA: {"hw:ephemeral_encryption": "true"}}, {"COMPUTE_EPHEMERAL_ENCRYPTION"}),
    (
        None,
        {EXTRA: {"hw:ephemeral_encryption": "true", "hw:ephemeral_encryption_format": "luks"}},
        {"COMPUTE_EPHEMERAL_ENCRYPTION", "COMPUTE_EPHEMERAL_ENCRYPTION_LUKS"},
    ),
    (None, {EXTRA: {"hw:sound_model": "virtio"}}, {"COMPUTE_SOUND_MODEL_VIRTIO"}),
    (None, {EXTRA: {"hw:sound_model": "ich9"}}, set()),
    (None, {EXTRA: VTPM}, {"COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER"}),
    (
        None,
        {EXTRA: {**VTPM, "hw:tpm_secret_security": "host"}},
        {"COMPUTE_SECURITY_TPM_SECRET_SECURITY_HOST"},
    ),
]


@pytest.mark.parametrize(("filters", "wishes", "traits"), ROOT_TRAITS)
def test_traits_of_the_root(
    filters: RequestFilterOptions | None, wishes: dict[str, object], traits: set[str]
) -> None:
    assert root(asked(filters, **wishes)) == traits


def test_owner_is_asked_for_once_all_services_tell_it() -> None:
    pci = {"requested_resources": (PORT,), "pci_groups": frozenset({"_port"})}
    assert root(asked(of=table(73, 73, 73, 73), **pci)) == {"OWNER_NOVA"}
    assert asked(of=table(73, 73, 73, 73), **pci).groups[1].required == all_of("OWNER_NOVA")
    assert root(asked(of=table(73, 72, 73, 73), **pci)) == set()
    assert root(asked(of=NodeTable(), **pci)) == set()
    of = table(73, 72, 73, 73)
    of.remove(["node1"])
    assert root(asked(of=of)) == {"OWNER_NOVA"}
    of.update([report("host2", "node2", service_version=1)])
    assert root(asked(of=of)) == set()


@pytest.mark.parametrize(
    ("wishes", "limit"),
    [
        ({}, 50),
        ({"requested_host": "host1"}, 50),
        ({"requested_host": "farm"}, None),
        ({"scheduler_hints": {"same_host": ("i",)}}, None),
        ({"scheduler_hints": {"query": ("[]",)}}, 50),
    ],
)
def test_limit_does_not_apply_where_it_could_leave_out_the_only_host(
    wishes: dict[str, object], limit: int | None
) -> None:
    options = SchedulerOptions(request_filters=RequestFilterOptions(max_placement_results=50))
    assert placement_queries(spec(**wishes), FilterFacts(table(), options)).limit == limit
    assert placement_queries(spec(**wishes), FilterFacts(table(), SchedulerOptions())).limit is None
