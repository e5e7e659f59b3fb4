"""Device profiles: their groups in the query, and operations that they do not allow."""

from typing import Any

import pytest

from roost.model.request import RequestGroup, all_of
from roost.model.spec import RequestedNetwork, RequestSpec
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.accelerator_options import AcceleratorOptions, profiles_from
from roost.scheduler.request.query import candidate_query
from support.clouds import spec

FPGA = """{"name": "fpga", "groups": [
    {"resources:FPGA": "1", "trait:CUSTOM_ARRIA10": "required", "accel:bitstream_id": "FB02"},
    {"resources:CUSTOM_LOCAL_MEMORY": 4, "trait:CUSTOM_OLD": "forbidden"}
]}"""
NIC = '{"name": "nic", "groups": [{"resources:CUSTOM_NIC": "1"}]}'
PORT = RequestedNetwork(port_id="port-1", device_profile="nic")


def options(*profiles: str) -> SchedulerOptions:
    return SchedulerOptions(accelerators=AcceleratorOptions(profiles_from(profiles)))


def of_profile(name: str = "fpga", **more: Any) -> RequestSpec:
    return spec(extra_specs={"accel:device_profile": name}, **more)


def groups(asked: RequestSpec, *profiles: str) -> dict[str, RequestGroup]:
    query = candidate_query(asked, NodeTable(), options(*profiles))
    return {group.suffix: group for group in query.groups if group.suffix}


def test_a_device_profile_becomes_request_groups() -> None:
    found = groups(of_profile(requested_networks=(PORT,)), FPGA, NIC)
    assert found == {
        "device_profile_0": RequestGroup({"FPGA": 1}, "device_profile_0", all_of("CUSTOM_ARRIA10")),
        "device_profile_1": RequestGroup(
            {"CUSTOM_LOCAL_MEMORY": 4}, "device_profile_1", forbidden=frozenset({"CUSTOM_OLD"})
        ),
        "device_profile_0port-1": RequestGroup({"CUSTOM_NIC": 1}, "device_profile_0port-1"),
    }
    query = candidate_query(of_profile(), NodeTable(), options(FPGA))
    assert "COMPUTE_ACCELERATORS" in query.root_required


def test_groups_that_the_spec_has_stay() -> None:
    given = RequestGroup({"FPGA": 2}, "device_profile_0")
    assert groups(of_profile(requested_resources=(given,))) == {"device_profile_0": given}


@pytest.mark.parametrize(
    ("asked", "wrong"),
    [
        (of_profile("gpu"), "'gpu' is none of the device profiles"),
        (
            spec(requested_networks=(RequestedNetwork(port_id="p", device_profile="x"),)),
            "p: 'x' is none",
        ),
        (
            spec(requested_networks=(RequestedNetwork(port_id="p", device_profile="fpga"),)),
            "port p: device profile 'fpga' has several devices",
        ),
        (of_profile(operation="live_migrate"), "live_migrate: an instance with accelerators does not move"),
        (spec(requested_networks=(PORT,), operation="live_migrate"), "port port-1 has an accelerator"),
    ],
)
def test_requests_that_are_refused(asked: RequestSpec, wrong: str) -> None:
    with pytest.raises(BadRequestSpec, match=wrong):
        groups(asked, FPGA, NIC)


@pytest.mark.parametrize("operation", ["evacuate", "migrate", "resize"])
def test_an_instance_with_accelerators_gets_others_on_the_host_that_it_moves_to(operation: Any) -> None:
    asked = of_profile(operation=operation, requested_networks=(PORT,))
    assert {"device_profile_0", "device_profile_0port-1"} <= groups(asked, FPGA, NIC).keys()


@pytest.mark.parametrize(
    ("texts", "wrong"),
    [
        (["{}"], "is not a JSON object with name and groups"),
        (['{"name": "x", "groups": []}'], "no name or no groups"),
        ([NIC, NIC], "'nic' is given twice"),
        (['{"name": "x", "groups": [{}]}'], "a group without resources"),
        (['{"name": "x", "groups": [{"resources:FPGA": "0"}]}'], "is not a number from 1"),
        (['{"name": "x", "groups": [{"resources:FPGA": "one"}]}'], "is not a number from 1"),
        (['{"name": "x", "groups": [{"resources:FPGA": "1", "trait:A": "no"}]}'], "neither required nor"),
        (['{"name": "x", "groups": [{"resources:FPGA": "1", "colour": "red"}]}'], "colour='red' is neither"),
    ],
)
def test_an_invalid_profile_is_refused(texts: list[str], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        profiles_from(texts)
