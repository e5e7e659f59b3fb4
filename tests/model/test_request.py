"""Request groups and the allocation candidate query."""

from roost.model.request import CandidateQuery, RequestGroup, all_of


def test_a_suffix_makes_a_group_granular() -> None:
    assert not RequestGroup({"VCPU": 1}).granular
    assert RequestGroup({"VCPU": 1}, "_1").granular


def test_the_resources_of_a_query_are_the_sum_of_its_groups() -> None:
    groups = (
        RequestGroup({"VCPU": 1, "DISK_GB": 10}),
        RequestGroup({"VCPU": 2}, "_1"),
        RequestGroup({}, "_2"),
    )
    assert CandidateQuery(groups).resources == {"VCPU": 3, "DISK_GB": 10}
    assert groups[0].resources == {"VCPU": 1, "DISK_GB": 10}


def test_all_of_demands_each_name() -> None:
    assert all_of("A", "B") == (frozenset({"A"}), frozenset({"B"}))
    assert all_of() == ()
