"""Nova's RequestSpec is read, and its Selections are answered."""

import asyncio
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roost.model.request import RequestGroup, all_of
from roost.model.spec import (
    Flavor,
    Image,
    NetworkMetadata,
    PciRequest,
    RequestedDestination,
    RequestedNetwork,
    RequestSpec,
    Selection,
    ServerGroup,
)
from roost.scheduler.api.wire.language import language_of
from roost.scheduler.api.wire.nova_selection import nova_selection, selection_of
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.cells import uuid_of_cell
from roost.scheduler.nodes.table import NodeTable
from support.clouds import flat
from support.nova_specs import PORT, UUID, flavor, made, request_spec, rich_request_spec
from support.scheduling_api import error_of, scheduling


def read(data: dict[str, Any], **more: Any) -> RequestSpec:
    return language_of(data, NodeTable()).read_spec(data, **more).spec


def test_all_that_a_scheduler_needs_is_read() -> None:
    assert read(rich_request_spec()) == RequestSpec(
        project_id="project",
        user_id="user",
        flavor=Flavor("small", 1, 1024, 10, {"trait:CUSTOM_FAST": "required"}, ephemeral_gb=1, swap_mb=512),
        image=Image(
            id=UUID,
            disk_format="qcow2",
            properties={
                "hw_disk_bus": "virtio",
                "hw_numa_nodes": "2",
                "hw_numa_cpus.0": "0,1",
                "hw_numa_cpus.1": "2",
                "hw_numa_mem.0": "512",
                "hw_numa_mem.1": "512",
                "hw_qemu_guest_agent": "True",
                "trait:CUSTOM_RED": "required",
            },
        ),
        volume_backed=True,
        availability_zone="az1",
        group=ServerGroup(UUID, "anti-affinity", ("host1",), 2),
        requested_resources=(
            RequestGroup(
                {"CUSTOM_GPU": 1},
                "port1",
                all_of("CUSTOM_FAST"),
                frozenset({"CUSTOM_RED"}),
                (frozenset({"a", "b"}),),
                frozenset({"c"}),
            ),
        ),
        pci_requests=(
            PciRequest(id="r1", count=2, specs=({"vendor_id": "8086"},), alias="gpu", numa_policy="required"),
        ),
        root_required=frozenset({"COMPUTE_NODE"}),
        root_forbidden=frozenset({"CUSTOM_RED"}),
        same_subtree=(frozenset({"port1", "_2"}),),
        requested_networks=(RequestedNetwork(network_id="net", port_id=PORT),),
        network_metadata=NetworkMetadata(physnets=frozenset({"physnet1"}), tunneled=True),
        requested_destination=RequestedDestination(
            host="host1",
            node="node1",
            cell="cell1",
            cell_uuid=UUID,
            aggregates=(frozenset({"a", "b"}), frozenset({"c"})),
            forbidden_aggregates=frozenset({"d"}),
        ),
        ignore_hosts=frozenset({"ignored"}),
        retried_hosts=frozenset({"failed"}),
        scheduler_hints={"query": ("[]",), "same_host": (UUID,)},
    )


@pytest.mark.parametrize(
    ("tag", "requester", "remote"),
    [("True", PORT, True), ("true", PORT, True), ("False", PORT, False), ("True", UUID, False)],
)
def test_the_pci_request_of_a_port_tells_if_a_smartnic_serves_it(
    tag: str, requester: str, remote: bool
) -> None:
    tags = {"physical_network": None, "remote_managed": tag}
    request = made("InstancePCIRequest", "1.4", count=1, spec=[tags], request_id="r", requester_id=requester)
    found = read(
        request_spec(
            pci_requests=made("InstancePCIRequests", "1.1", requests=[request]),
            requested_networks=made(
                "NetworkRequestList",
                "1.1",
                objects=[made("NetworkRequest", "1.3", network_id=None, port_id=PORT)],
            ),
        )
    )
    assert found.requested_networks == (RequestedNetwork(port_id=PORT, remote_managed=remote),)


def test_the_operation_is_that_of_the_hint_or_of_the_caller() -> None:
    assert read(request_spec()).operation == "create"
    assert read(request_spec(), operation="live_migrate").operation == "live_migrate"
    assert read(request_spec(scheduler_hints={"_nova_check_type": ["rebuild"]})).operation == "rebuild"


def test_a_group_of_an_earlier_version_has_a_list_of_policies() -> None:
    group = made("InstanceGroup", "1.10", uuid=UUID, policies=["soft-affinity"], hosts=None)
    found = read(request_spec("1.9", instance_group=group)).group
    assert found == ServerGroup(UUID, "soft-affinity")


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (request_spec("1.16"), "version 1.16; RequestSpec can be read from 1.9 to 1.15"),
        (request_spec("1.8"), "version 1.8"),
        (request_spec("2.0"), "version 2.0"),
        (request_spec(flavor=flavor() | {"nova_object.version": "1.3"}), "flavor has version 1.3"),
        (request_spec(flavor=made("ImageMeta", "1.8")), "request_spec.flavor is no Flavor"),
        (request_spec(flavor=None), "request_spec.flavor is missing"),
        (request_spec(flavor=flavor(vcpus="1")), "request_spec.flavor.vcpus is '1'"),
        (request_spec(flavor=flavor(vcpus=-1)), "flavor.vcpus is -1"),
        (request_spec(user_id=None), "request_spec.user_id is missing"),
        (made("Instance", "2.7"), "no RequestSpec"),
        ({"nova_object.name": "RequestSpec", "nova_object.namespace": "nova"}, "nova_object.data"),
    ],
)
def test_what_cannot_be_read_is_named(data: dict[str, Any], named: str) -> None:
    with pytest.raises(BadRequestSpec) as error:
        read(data)
    assert named in str(error.value)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in JSON data."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from _places(each, (*path, key))


def test_no_wrong_value_is_a_fault_of_the_scheduler() -> None:
    """Each value in turn is replaced by others: the spec is read, or refused with a text."""
    rich = rich_request_spec()
    for path in list(_places(rich))[1:]:
        for wrong in (None, True, -1, "", "x", [], [1], {}, {"x": []}, 1.5):
            data = copy.deepcopy(rich)
            at = data
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = wrong
            try:
                read(data) if isinstance(data, dict) and "nova_object.name" in data else None
            except BadRequestSpec as error:
                assert str(error)


SELECTION = Selection(
    "host1",
    UUID,
    "cell1",
    {UUID: {"VCPU": 1}},
    {"": [UUID]},
    1.5,
    "az1",
    {"vcpu": 4, "numa_topology": {"cpu_allocation_ratio": 16.0}},
)


def test_a_selection_is_read_as_it_was_shown() -> None:
    shown = nova_selection(SELECTION, "node1")
    found = selection_of(json.loads(json.dumps(shown)))
    assert (found.host, found.node, found.zone) == ("host1", UUID, "az1")
    assert (found.allocations, found.mappings) == (SELECTION.allocations, SELECTION.mappings)
    assert found.cell == uuid_of_cell("cell1") == uuid_of_cell(uuid_of_cell("cell1"))
    assert shown["nova_object.data"]["nodename"] == "node1"


def test_nova_asks_and_is_answered_in_its_language(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, flat(3)) as api:
            answer = await api.select(request_spec=request_spec(), num_alternates=1)
            assert answer.status_code == 200, answer.text
            body = answer.json()
            assert body["instances"] == [UUID]
            [[selected, alternate]] = body["selections"]
            request = json.loads(selected["nova_object.data"]["allocation_request"])
            held = {each: {"resources": amounts} for each, amounts in api.held()[UUID].items()}
            assert request["allocations"] == held
            swapped = await api.client.post(
                "/v1/use_alternate",
                json={
                    "request_spec": request_spec(),
                    "instance": UUID,
                    "failed": selected,
                    "reason": "no IP",
                    "alternates": [alternate],
                    "run": body["run"],
                },
            )
            assert swapped.status_code == 200, swapped.text
            [claimed] = swapped.json()["selections"]
            node = alternate["nova_object.data"]["compute_node_uuid"]
            assert claimed["nova_object.data"]["compute_node_uuid"] == node
            assert set(api.held()[UUID]) == {node}
            three = request_spec(num_instances=3, flavor=flavor(vcpus=8))
            refused = await api.select(request_spec=three)
            assert error_of(refused)["code"] == "scheduler.no_valid_host"
            old = await api.select(request_spec=request_spec("1.1"))
            assert error_of(old)["code"] == "scheduler.bad_request_spec"

    asyncio.run(main())
