"""The Azure trace: its requests, their lifetimes, and the lines that are refused."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.bench.errors import TraceError
from roost.bench.replay import azure
from roost.bench.replay.workload import WorkloadHostTree
from roost.model.spec import Flavor

GOOD = {
    azure.FLAVORS: "1,0.75 a\n2,3.5 b\n",
    azure.INTERVALS: "0 0\n300 1\n600 2\n900 2\n1200 2\n1500 3\n1800 3\n",
    azure.ARRIVALS: "600 a,|,b,a,b,|\n900 \n1200 a,a,|\n",
    azure.ENDS: "600 U0,|,U1,C0,U2,|\n900 \n1200 C3,U3,|\n",
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    for name, text in GOOD.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_one_flavor_of_a_batch_is_one_request(trace: Path) -> None:
    bins = azure.read(trace).bins
    asked = [[(each.at, each.flavor.name, each.count) for each in bin_.requests] for bin_ in bins]
    assert asked == [
        [(600, "azure-a", 1), (600, "azure-b", 2), (600, "azure-a", 1)],
        [],
        [(1200, "azure-a", 2)],
    ]
    assert [bin_.start for bin_ in bins] == [600, 900, 1200]


def test_lifetime_is_the_midpoint_of_its_bin_or_to_the_end(trace: Path) -> None:
    lifetimes = [each.lifetimes for bin_ in azure.read(trace).bins for each in bin_.requests]
    assert lifetimes == [(0,), (300, 900), (None,), (None, 1650)]


def test_memory_is_in_mib(trace: Path) -> None:
    first, second, *_ = azure.read(trace).bins[0].requests
    assert first.flavor == Flavor("azure-a", vcpus=1, memory_mb=768)
    assert second.flavor == Flavor("azure-b", vcpus=2, memory_mb=3584)


def test_each_batch_has_a_project_of_its_own_and_always_the_same(trace: Path) -> None:
    requests = [each for bin_ in azure.read(trace).bins for each in bin_.requests]
    first, second, third, fourth = (each.project_id for each in requests)
    assert second == third and len({first, second, fourth}) == 3
    assert requests == [each for bin_ in azure.read(trace).bins for each in bin_.requests]
    assert azure.read(trace, bins=1).bins == azure.read(trace).bins[:1]


def test_hosts_are_as_many_and_as_big_as_asked(trace: Path) -> None:
    hosts = azure.read(trace).hosts
    assert len(hosts) == 1000 and (hosts[0].name, hosts[-1].name) == ("host-000", "host-999")
    assert hosts[7].shape.resources == {"VCPU": 64, "MEMORY_MB": 448 * 1024}
    small = WorkloadHostTree({"VCPU": 2, "MEMORY_MB": 4096})
    assert [host.shape for host in azure.read(trace, hosts=3, shape=small).hosts] == [small] * 3


@pytest.mark.parametrize(("bins", "hosts"), [(0, 1), (1, 0), (None, -1)])
def test_no_bins_or_no_hosts_are_refused(trace: Path, bins: int | None, hosts: int) -> None:
    with pytest.raises(ValueError, match="must be 1 or more"):
        azure.read(trace, bins, hosts)


FLAVOR_FORM = "not of the form 'vCPUs,GB letter'"
WHOLE = "is not a whole number from 0 to 2147483647"
NO_LIFETIME = "not U or C and a lifetime bin of v1.interval_map.txt"


def arrivals(first: str = "600 a,|,b,a,b,|", second: str = "900 ", third: str = "1200 a,a,|") -> str:
    return f"{first}\n{second}\n{third}\n"


def ends(first: str = "600 U0,|,U1,C0,U2,|", second: str = "900 ", third: str = "1200 C3,U3,|") -> str:
    return f"{first}\n{second}\n{third}\n"


BAD = [
    (azure.FLAVORS, "1;0.75 a\n", f"1: {FLAVOR_FORM}: '1;0.75 a'"),
    (azure.FLAVORS, "0,1 a\n", f"1: {FLAVOR_FORM}: '0,1 a'"),
    (azure.FLAVORS, "1,nan a\n", f"1: {FLAVOR_FORM}: '1,nan a'"),
    (azure.FLAVORS, "1,1 |\n", f"1: {FLAVOR_FORM}: '1,1 |'"),
    (azure.FLAVORS, "1,1 a\n2,0 b\n", "2: memory is not a whole number of MiB, 1 or more: '0 GB'"),
    (azure.FLAVORS, "1,0.3 a\n", "1: memory is not a whole number of MiB, 1 or more: '0.3 GB'"),
    (azure.FLAVORS, "1,1 a\n2,2 a\n", "2: the flavor letter is there twice: 'a'"),
    (azure.INTERVALS, "0 0\n300\n", "2: not of the form 'second bin': '300'"),
    (azure.INTERVALS, "0 0\nx 1\n", f"2: second {WHOLE}: 'x'"),
    (azure.INTERVALS, "0 0\n300 -1\n", f"2: lifetime bin {WHOLE}: '-1'"),
    (azure.ARRIVALS, arrivals(third="1200 a,z,|"), "3: flavor letter not in flav_map.txt: 'z'"),
    (azure.ARRIVALS, arrivals("600 a,|,b,,b,|"), "1: flavor letter not in flav_map.txt: ''"),
    (azure.ARRIVALS, arrivals("x a,|"), f"1: start second {WHOLE}: 'x'"),
    (azure.ARRIVALS, arrivals(second=""), f"2: start second {WHOLE}: ''"),
    (azure.ENDS, ends("600 U0,|,U1,C0,U9,|"), f"1: {NO_LIFETIME}: 'U9'"),
    (azure.ENDS, ends("600 U0,|,U1,C0,X2,|"), f"1: {NO_LIFETIME}: 'X2'"),
    (azure.ENDS, ends("600 U0,|,U1,C0,U01,|"), f"1: {NO_LIFETIME}: 'U01'"),
    (azure.ENDS, ends(third="1200 C3,|"), "3: v1.dev.txt has 3 entries on this line: 2"),
    (azure.ENDS, ends("600 U0,|,U1,|,U2,|"), "1: a batch ends elsewhere than in v1.dev.txt: 'a and |'"),
    (azure.ENDS, ends(second="901 "), "2: v1.dev.txt has a bin that starts at 900 here: 901"),
    (azure.ENDS, ends() + "1500 U0,|\n", "4: v1.dev.txt has no such line, only 3: '1500 U0,|'"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD)
def test_bad_file_is_refused_with_its_place_and_value(
    trace: Path, name: str, text: str, message: str
) -> None:
    (trace / name).write_text(text)
    with pytest.raises(TraceError) as refusal:
        azure.read(trace, bins=1)
    assert str(refusal.value) == f"{trace / name}:{message}"


@pytest.mark.parametrize(
    ("arrivals", "ends", "message"),
    [
        ("600 a,|,|", "600 U0,|,|", "1: a batch is empty: '|'"),
        ("600 |", "600 |", "1: a batch is empty: '|'"),
        ("600 a,|,b", "600 U0,|,U1", "1: the last batch is not ended by '|': 'b'"),
        ("600 a,|\n600 a,|", "600 U0,|\n600 U0,|", "2: the bin does not start after the one before it: 600"),
    ],
)
def test_bad_lines_that_agree_are_refused(trace: Path, arrivals: str, ends: str, message: str) -> None:
    (trace / azure.ARRIVALS).write_text(arrivals)
    (trace / azure.ENDS).write_text(ends)
    with pytest.raises(TraceError, match=f"{re.escape(f'{trace / azure.ARRIVALS}:{message}')}$"):
        azure.read(trace)


def test_shorter_file_of_lifetimes_is_refused_at_the_line_it_lacks(trace: Path) -> None:
    (trace / azure.ENDS).write_text("600 U0,|,U1,C0,U2,|\n900 \n")
    with pytest.raises(
        TraceError, match=rf"{azure.ARRIVALS}:3: {azure.ENDS} has no such line, only 2: '1200"
    ):
        azure.read(trace)


@pytest.mark.parametrize("name", list(GOOD))
def test_missing_file_is_refused(trace: Path, name: str) -> None:
    (trace / name).unlink()
    with pytest.raises(TraceError, match=rf"{name}: cannot be read: No such file or directory$"):
        azure.read(trace)


vms = st.tuples(st.sampled_from("ab"), st.sampled_from(["U0", "U1", "C2"]))


@given(st.lists(st.lists(vms, min_size=1), min_size=1))
def test_every_vm_of_a_batch_is_in_the_request_of_its_flavor(batches: list[list[tuple[str, str]]]) -> None:
    entries = [vm for batch in batches for vm in (*batch, ("|", "|"))]
    with TemporaryDirectory() as directory:
        trace = Path(directory)
        for name, text in GOOD.items():
            (trace / name).write_text(text)
        (trace / azure.ARRIVALS).write_text(f"300 {','.join(letter for letter, _ in entries)}")
        (trace / azure.ENDS).write_text(f"300 {','.join(code for _, code in entries)}")
        [bin_] = azure.read(trace).bins

    asked: dict[str, list[tuple[str, tuple[int | None, ...]]]] = {}
    for request in bin_.requests:
        asked.setdefault(request.project_id, []).append((request.flavor.name, request.lifetimes))

    lifetimes = {"U0": 0, "U1": 300, "C2": None}
    assert list(asked.values()) == [
        [
            (f"azure-{flavor}", tuple(lifetimes[code] for letter, code in batch if letter == flavor))
            for flavor in dict.fromkeys(letter for letter, _ in batch)
        ]
        for batch in batches
    ]
