"""The openb trace: nodes as provider trees, pods as requests, and the lines that are refused."""

from pathlib import Path

import pytest

from roost.bench.errors import TraceError
from roost.bench.replay import openb
from roost.bench.replay.workload import Child, WorkloadHostTree, WorkloadRequest
from roost.model.request import RequestGroup
from roost.model.spec import Flavor
from roost.scheduler.weighers.fragmentation import TypicalRequest

NODE_COLUMNS = "sn,cpu_milli,memory_mib,gpu,model\n"
POD_COLUMNS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time\n"
)
NODES = "n0,32000,1024,0,\nn1,64000,2048,2,V100M32\n"
PODS = (
    "late,1500,512,1,460,,LS,Running,1000,1250\n"
    "plain,8000,256,0,0,,LS,Running,0,400\n"
    "picky,1000,128,2,1000,T4|V100M32,BE,Running,310,\n"
)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    (tmp_path / openb.NODES["all"]).write_text(NODE_COLUMNS + NODES)
    (tmp_path / openb.NODES["gpu"]).write_text(NODE_COLUMNS + "g0,64000,2048,1,Tesla-T4 (rev.2)\n")
    (tmp_path / openb.PODS).write_text(POD_COLUMNS + PODS)
    return tmp_path


def requests(trace: Path) -> dict[int, WorkloadRequest]:
    return {each.at: each for bin_ in openb.read(trace).bins for each in bin_.requests}


def test_each_gpu_is_a_child_provider_with_a_trait(trace: Path) -> None:
    plain, with_gpus = openb.read(trace).hosts
    assert plain.name == "n0" and plain.shape == WorkloadHostTree(
        {"CUSTOM_CPU_MILLI": 32000, "MEMORY_MB": 1024}
    )
    assert with_gpus.shape.children == (
        Child("gpu0", {"CUSTOM_GPU_MILLI": 1000}, ("CUSTOM_GPU_V100M32",)),
        Child("gpu1", {"CUSTOM_GPU_MILLI": 1000}, ("CUSTOM_GPU_V100M32",)),
    )


def test_node_list_is_chosen_and_model_names_become_traits(trace: Path) -> None:
    workload = openb.read(trace, nodes="gpu")
    assert [host.name for host in workload.hosts] == ["g0"]
    assert workload.hosts[0].shape.children[0].traits == ("CUSTOM_GPU_TESLA_T4_REV_2",)


def test_custom_names_include_those_that_only_pods_name(trace: Path) -> None:
    workload = openb.read(trace)
    assert workload.resource_classes == ("CUSTOM_CPU_MILLI", "CUSTOM_GPU_MILLI")
    assert workload.traits == ("CUSTOM_GPU_T4", "CUSTOM_GPU_V100M32")


def test_pods_arrive_in_order_in_bins_and_live_until_deleted(trace: Path) -> None:
    bins = openb.read(trace).bins
    assert [(bin_.start, [each.at for each in bin_.requests]) for bin_ in bins] == [
        (0, [0]),
        (300, [310]),
        (900, [1000]),
    ]
    assert [each.lifetimes for each in requests(trace).values()] == [(400,), (None,), (250,)]
    assert [bin_.start for bin_ in openb.read(trace, bin_seconds=500).bins] == [0, 1000]


def test_cpu_and_memory_are_in_the_flavor(trace: Path) -> None:
    extra_specs = {"resources:VCPU": "0", "resources:DISK_GB": "0", "resources:CUSTOM_CPU_MILLI": "1500"}
    assert requests(trace)[1000].flavor == Flavor("cpu1500-mem512-gpu1x460", 2, 512, 0, extra_specs)


def test_pod_without_gpus_has_no_gpu_group(trace: Path) -> None:
    assert requests(trace)[0].requested_resources == ()


def test_pod_with_one_gpu_asks_for_its_share(trace: Path) -> None:
    request = requests(trace)[1000]
    assert request.requested_resources == (RequestGroup({"CUSTOM_GPU_MILLI": 460}, "_gpu0"),)
    assert "group_policy" not in request.flavor.extra_specs


def test_pod_with_more_gpus_asks_for_whole_ones_apart_and_for_any_of_its_models(trace: Path) -> None:
    request = requests(trace)[310]
    any_of = (frozenset({"CUSTOM_GPU_T4", "CUSTOM_GPU_V100M32"}),)
    assert request.requested_resources == (
        RequestGroup({"CUSTOM_GPU_MILLI": 1000}, "_gpu0", any_of),
        RequestGroup({"CUSTOM_GPU_MILLI": 1000}, "_gpu1", any_of),
    )
    assert request.flavor.extra_specs["group_policy"] == "isolate"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("n0,32000,1024,0", "4 fields where 5 are expected: 'n0,32000,1024,0'"),
        (",32000,1024,0,", "sn is missing: ''"),
        ("n1,32000,1024,0,", "sn is there twice: 'n1'"),
        ("n0,0,1024,0,", "cpu_milli is not a whole number from 1 to 2147483647: '0'"),
        ("n0,32000,much,0,", "memory_mib is not a whole number from 1 to 2147483647: 'much'"),
        ("n0,32000,1024,65,T4", "gpu is not a whole number from 0 to 64: '65'"),
        ("n0,32000,1024,1,", "not the name of a GPU model: ''"),
        ("n0,32000,1024,1,??", "not the name of a GPU model: '??'"),
    ],
)
def test_bad_node_is_refused(trace: Path, row: str, message: str) -> None:
    path = trace / openb.NODES["all"]
    path.write_text(f"{NODE_COLUMNS}n1,64000,2048,0,\n{row}\n")
    with pytest.raises(TraceError) as refusal:
        openb.read(trace)
    assert str(refusal.value) == f"{path}:3: {message}"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("p,1,1,0,0,,LS,Running,0", "9 fields where 10 are expected: 'p,1,1,0,0,,LS,Running,0'"),
        ("late,1,1,0,0,,LS,Running,0,1", "name is there twice: 'late'"),
        ("p,1,1,-1,0,,LS,Running,0,1", "num_gpu is not a whole number from 0 to 64: '-1'"),
        ("p,1,1,1,0,,LS,Running,0,1", "gpu_milli is not a whole number from 1 to 1000: '0'"),
        ("p,1,1,1,1001,,LS,Running,0,1", "gpu_milli is not a whole number from 1 to 1000: '1001'"),
        ("p,1,1,1,10,T4|,LS,Running,0,1", "not the name of a GPU model: ''"),
        ("p,1,1,0,0,,LS,Running,,1", "creation_time is not a whole number from 0 to 2147483647: ''"),
        ("p,1,1,0,0,,LS,Running,5,4", "deletion_time is before creation_time: '4'"),
        ("p,0,0,0,0,,LS,Running,0,1", "the pod asks for nothing: 'p'"),
    ],
)
def test_bad_pod_is_refused(trace: Path, row: str, message: str) -> None:
    path = trace / openb.PODS
    path.write_text(f"{POD_COLUMNS}{PODS}{row}\n")
    with pytest.raises(TraceError) as refusal:
        openb.read(trace)
    assert str(refusal.value) == f"{path}:5: {message}"


@pytest.mark.parametrize("name", [openb.NODES["all"], openb.PODS])
def test_missing_file_is_refused(trace: Path, name: str) -> None:
    (trace / name).unlink()
    with pytest.raises(TraceError, match=f"{name}: cannot be read"):
        openb.read(trace)


def pod(name: str, gpus: int, milli: int = 1000, cpu: int = 1000) -> openb.Pod:
    return openb.Pod(name, cpu, 512, gpus, milli, (), 0, 100)


MANY = [pod("half", 1, 500), pod("two", 2), pod("plain", 0), pod("one", 1)]


def test_inflated_demand_has_all_pods_before_any_twice_and_ends_at_the_demand() -> None:
    found = openb.inflated(MANY, 20_000, seed=7)
    assert sorted(each.name for each in found[:4]) == sorted(each.name for each in MANY)
    assert {each.name for each in found[4:]} <= {each.name for each in MANY}
    asked = [each.gpus * each.gpu_milli for each in found]
    assert sum(asked) >= 20_000 > sum(asked[:-1])
    assert [each.created for each in found] == list(range(len(found)))
    assert {each.deleted for each in found} == {None}


def test_inflated_demand_depends_on_the_seed_alone() -> None:
    orders = [[each.name for each in openb.inflated(MANY, 20_000, seed)] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_a_demand_below_the_trace_leaves_pods_out() -> None:
    assert sum(each.gpus * each.gpu_milli for each in openb.inflated(MANY, 1_500, seed=3)) < 3_500
    assert openb.inflated([pod("plain", 0)], 1_000, seed=3) == []


def test_inflated_workload_asks_for_a_share_of_the_gpus_of_all_nodes(trace: Path) -> None:
    workload = openb.read(trace, inflate=1.5)
    flavors = [each.flavor.name for bin_ in workload.bins for each in bin_.requests]
    gpus = sum(
        {"cpu1500-mem512-gpu1x460": 460, "cpu1000-mem128-gpu2x1000": 2000}.get(name, 0) for name in flavors
    )
    assert 3_000 <= gpus < 5_000
    assert workload.in_order and not openb.read(trace).in_order
    assert all(at is None for bin_ in workload.bins for each in bin_.requests for at in each.departures)


def test_typical_requests_are_the_most_frequent_kinds(tmp_path: Path) -> None:
    rows = [f"a{number},1000,512,1,500,,LS,Running,0," for number in range(60)]
    rows += [f"b{number},2000,512,0,0,,LS,Running,0," for number in range(36)]
    rows += [f"c{number},{number + 1},64,2,1000,T4|V100M32,LS,Running,0," for number in range(4)]
    (tmp_path / openb.PODS).write_text(POD_COLUMNS + "\n".join(rows) + "\n")
    first, second = openb.typical_requests(tmp_path)
    assert first == TypicalRequest(60.0, {openb.CPU: 1000, "MEMORY_MB": 512}, 1, 500)
    assert second == TypicalRequest(36.0, {openb.CPU: 2000, "MEMORY_MB": 512}, 0, 0)
