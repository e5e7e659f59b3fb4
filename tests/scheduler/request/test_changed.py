"""A recorded request with something changed: a constraint left out, another flavor."""

import pytest

from roost.model.errors import OperatorError
from roost.model.request import CandidateQuery, RequestGroup, all_of
from roost.model.spec import Flavor, ServerGroup
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.changed import (
    Changes,
    NoSuchConstraint,
    changed_options,
    changed_queries,
    changed_spec,
    flavor_from,
)
from roost.scheduler.request.places import RequestedPlace
from roost.scheduler.request.scheduling_request import PlacementQueries
from support.clouds import spec

PLAIN = RequestGroup(resources={"VCPU": 4, "MEMORY_MB": 512}, required=all_of("CUSTOM_RED"))
GPU = RequestGroup(suffix="1", resources={"CUSTOM_GPU": 1})
ASKED = PlacementQueries(
    CandidateQuery((PLAIN, GPU), isolate=True), places=(RequestedPlace("force_hosts", (1,), True),)
)
FILTERS = ("ComputeFilter", "acme.QuietFilter")


def left(*without: str) -> PlacementQueries:
    """What is asked without some constraints."""
    return changed_queries(ASKED, spec(), FILTERS, Changes(without))


@pytest.mark.parametrize("name", ["4 VCPU", "VCPU"])
def test_an_amount_goes_by_its_text_or_its_class(name: str) -> None:
    assert left(name).query.groups[0].resources == {"MEMORY_MB": 512}


def test_a_group_of_nothing_else_goes_as_a_whole() -> None:
    assert [group.suffix for group in left("group 1: 1 CUSTOM_GPU").query.groups] == [""]


def test_traits_places_and_policies_go() -> None:
    assert left("CUSTOM_RED").query.groups[0].required == ()
    assert left("force_hosts").places == ()
    assert not left("group_policy isolate").query.isolate
    assert left("ComputeFilter") == left("acme.QuietFilter") == left("QuietFilter") == ASKED


@pytest.mark.parametrize("name", ["QuietFilter", "acme.QuietFilter"])
def test_filters_go_by_the_name_in_the_options_or_in_the_steps(name: str) -> None:
    options = SchedulerOptions(filters=FILTERS)
    assert changed_options(options, Changes((name,))).filters == ("ComputeFilter",)


def test_the_server_group_goes_and_the_flavor_changes() -> None:
    asked = spec(group=ServerGroup("g", "affinity"))
    changes = Changes(("server group",), Flavor("f", 2, 1))
    assert changed_queries(ASKED, asked, FILTERS, changes) == ASKED
    changed = changed_spec(asked, changes)
    assert (changed.group, changed.flavor.vcpus) == (None, 2)


@pytest.mark.parametrize("name", ["9 VCPU", "NoSuchFilter", "server group"])
def test_what_is_not_there_is_refused_with_what_there_is(name: str) -> None:
    with pytest.raises(NoSuchConstraint, match="it has 4 VCPU, 512 MEMORY_MB, required CUSTOM_RED"):
        left(name)


def test_flavors_are_changed_by_a_text() -> None:
    flavor = Flavor("f", 1, 512, 10, {"hw:cpu_policy": "dedicated", "a": "b"})
    changed = flavor_from(flavor, "vcpus=4, hw:cpu_policy=,trait:CUSTOM_RED=required")
    assert changed == Flavor("f", 4, 512, 10, {"a": "b", "trait:CUSTOM_RED": "required"})


@pytest.mark.parametrize("text", ["vcpus", "vcpus=many", "=1"])
def test_flavors_with_bad_changes_are_refused(text: str) -> None:
    with pytest.raises(OperatorError, match="flavor: "):
        flavor_from(Flavor("f", 1, 1), text)


def test_weighers_and_places_go() -> None:
    options = changed_options(SchedulerOptions(), Changes(("RAMWeigher",)))
    assert "CPUWeigher" in options.weighers and "RAMWeigher" not in options.weighers
    of = spec(ignore_hosts=frozenset({"a"}), force_hosts=("b",))
    assert changed_spec(of, Changes(("ignore_hosts", "force_hosts"))) == spec()
    changed_queries(ASKED, of, FILTERS, Changes(("ignore_hosts",)))
