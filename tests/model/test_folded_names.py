"""Names of hosts, folded by their numbers."""

from hypothesis import given
from hypothesis import strategies as st

from roost.model.folded_names import folded, host_names, unfolded
from roost.model.reasons import HostNames, Reasons, Relaxation
from roost.model.visibility import Viewer, visible

NAMES = st.sets(
    st.from_regex(r"[a-z]{0,2}-?[0-9]{0,3}(\.[a-z]{1,2}[0-9]?)?", fullmatch=True).filter(bool), max_size=30
)


def test_names_that_differ_in_a_number_are_folded() -> None:
    names = ["compute-007", "compute-008", "compute-010", "gpu1.example", "gpu2.example", "spare", "x9"]
    assert folded(names) == ("compute-[007-008,010]", "gpu[1-2].example", "spare", "x9")


def test_leading_zeros_tell_names_apart() -> None:
    assert folded(["n1", "n01"]) == ("n01", "n1")
    assert folded(["n9", "n10", "n11"]) == ("n[9-11]",)


@given(NAMES)
def test_folded_names_are_the_same_names_again(names: set[str]) -> None:
    assert sorted(unfolded(folded(names))) == sorted(names)


def test_a_thousand_numbered_hosts_are_a_few_characters() -> None:
    names = host_names((f"compute-{number:05}" for number in range(1000)), left_out=7)
    assert names == HostNames(("compute-[00000-00999]",), 7)


def test_a_project_sees_no_names_of_hosts() -> None:
    amount = Relaxation(kind="amount", name="VCPU", text="4 VCPU", distance=0.5, host="secret-1")
    disabled = Relaxation(kind="filter", name="ComputeFilter", text="x", distance=0.5, host="secret-2")
    reasons = Reasons(
        sentence="secret-1 lacks 4", public="no host has 8 VCPU", relaxations=(amount, disabled)
    )
    shown = visible(reasons, Viewer.PROJECT)
    assert "secret" not in repr(shown)
    assert [each.kind for each in shown.relaxations] == ["amount"]
