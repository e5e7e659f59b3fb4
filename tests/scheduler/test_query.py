"""From a request spec to a candidate query."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.model.request import CandidateQuery, RequestGroup, all_of
from roost.model.spec import ServerGroup
from roost.model.vocabulary import DISABLED_TRAIT, MAX_INT
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.query import candidate_query
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


def test_class_in_a_granular_group_is_taken_out_of_the_flavors_own() -> None:
    found = query(2, 512, 5, extra_specs={"resources1:VCPU": "1", "resources_b:VCPU": "1"})
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
    extra = {"hw:cpu_policy": "dedicated", "aggregate_instance_extra_specs:ssd": "yes", "quota": "1"}
    assert query(1, 512, 0, extra_specs=extra) == query(1, 512, 0)


BAD = [
    ({"extra_specs": {"resources:VCPU": "two"}}, "resources:VCPU='two' is not a number"),
    ({"extra_specs": {"resources:VCPU": "-1"}}, "is not a number"),
    ({"extra_specs": {"resources:VCPU": "9" * 5000}}, "is not a number"),
    ({"extra_specs": {"resources:VCPU": str(MAX_INT + 1)}}, "VCPU=2147483648 is not from 1 to 2147483647"),
    ({"extra_specs": {"resources:VCPU,X": "1"}}, "'VCPU,X' is no name of a resource class"),
    ({"extra_specs": {"trait:CUSTOM_A": "maybe"}}, "trait:CUSTOM_A='maybe' is neither"),
    ({"extra_specs": {"trait:!X": "required"}}, "'!X' is no name of a trait"),
    ({"extra_specs": {"group_policy": "both"}}, "group_policy='both' is neither"),
    ({"extra_specs": {"trait1:CUSTOM_A": "required"}}, "request group '1' asks for traits"),
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
