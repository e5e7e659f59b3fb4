"""Reads Alibaba's GPU cluster trace of 2023 (openb) as a workload.

Source: the files that come with the FGD simulator (USENIX ATC'23).

A node becomes a host, and each of its GPUs a child provider ``<node>-gpu<i>`` with 1000
``CUSTOM_GPU_MILLI``, so that pods can share it, and a trait for its model. A pod becomes a request for one
instance.

CPU becomes ``CUSTOM_CPU_MILLI``, in thousandths of a thread. VCPU counts whole threads, but two of three
pods ask for a fraction of one. Rounded up, fewer pods would fit than in the trace.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal

import msgspec

from roost.bench.replay.tracefile import TraceRow, read_rows
from roost.bench.replay.workload import (
    BIN_SECONDS,
    Child,
    Host,
    Workload,
    WorkloadHostTree,
    WorkloadRequest,
    into_bins,
    project_id,
)
from roost.model.request import RequestGroup
from roost.model.spec import Flavor
from roost.model.vocabulary import MAX_NAME
from roost.scheduler.weighers.fragmentation import TypicalRequest

NODES: Final = {"all": "openb_node_list_all_node.csv", "gpu": "openb_node_list_gpu_node.csv"}
PODS: Final = "openb_pod_list_default.csv"

CPU: Final = "CUSTOM_CPU_MILLI"
GPU: Final = "CUSTOM_GPU_MILLI"
WHOLE_GPU: Final = 1000
"""``CUSTOM_GPU_MILLI`` of one GPU."""

INFLATION: Final = 1.3
"""GPUs that pods ask for in the evaluation of the FGD paper, as a multiple of the GPUs of the nodes.

The recorded pods use 1 % of the GPUs at most.
"""

PUBLISHED_GPU_ALLOCATION: Final = {"Random": 87.47, "BestFit": 93.08, "FGD": 95.39}
"""Percent of GPU that is allocated at 130 % demand on all nodes, by policy (FGD: ± 0.08).

Source: the FGD paper.
"""

_INFLATED_BINS = 50
"""Approximate number of bins of an inflated workload."""
_TYPICAL = 0.95
"""Share of all pods that the typical kinds cover."""

MAX_GPUS: Final = 64
"""Most GPUs of one node or one pod. A line with more is invalid."""


class OpenbNode(msgspec.Struct, frozen=True):
    """A node of the trace: thousandths of a thread, MiB of memory, and ``gpus`` GPUs of one model."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


class Pod(msgspec.Struct, frozen=True):
    """A pod of the trace.

    ``gpu_milli``: thousandths that it takes of each of its ``gpus``. ``models``: the GPU models that it
    accepts; empty: all. ``created`` and ``deleted``: virtual seconds; ``deleted`` is None if it stays to the
    end.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...]
    created: int
    deleted: int | None


def read(
    directory: Path,
    nodes: Literal["all", "gpu"] = "all",
    bin_seconds: int = BIN_SECONDS,
    inflate: float | None = None,
    seed: int = 42,
) -> Workload:
    """Return the trace in ``directory`` as a workload on all nodes or on those with GPUs.

    Pods arrive at their creation, in bins of ``bin_seconds``, and depart at their deletion. The trace does
    not identify tenants: all requests are of one project.

    With ``inflate`` pods arrive one after the other in an order that depends on ``seed``, and none departs:
    first all pods, then pods drawn among them, until they ask for ``inflate`` times the GPUs of the nodes.
    Source: the evaluation of the FGD paper, which inflates demand to 130 %.

    Raises:
        TraceError: a file cannot be read, or a line is invalid.
    """
    cluster = read_nodes(directory / NODES[nodes])
    pods = sorted(read_pods(directory / PODS), key=lambda pod: pod.created)
    if inflate is not None:
        pods = inflated(pods, inflate * WHOLE_GPU * sum(node.gpus for node in cluster), seed)
        bin_seconds = len(pods) // _INFLATED_BINS + 1
    models = {node.model for node in cluster if node.gpus} | {model for pod in pods for model in pod.models}
    return Workload(
        name=f"openb-{nodes}",
        hosts=tuple(map(host, cluster)),
        bins=into_bins([request(pod) for pod in pods], bin_seconds),
        resource_classes=(CPU, GPU),
        traits=tuple(sorted({model_trait(model) for model in models})),
        in_order=inflate is not None,
    )


def inflated(pods: Sequence[Pod], demand: float, seed: int) -> list[Pod]:
    """Return the pods in a random order, and pods drawn among them until all ask for ``demand`` of GPUs.

    The n-th is created at second n and stays. Pods beyond the demand are left out.
    """
    draw = random.Random(seed)
    order = draw.sample(pods, len(pods))
    asked = 0
    arriving: list[Pod] = []
    while asked < demand and any(pod.gpus for pod in pods):
        pod = order.pop() if order else draw.choice(pods)
        asked += pod.gpus * pod.gpu_milli
        arriving.append(msgspec.structs.replace(pod, created=len(arriving), deleted=None))
    return arriving


def typical_requests(directory: Path) -> list[TypicalRequest]:
    """Return the most frequent kinds of pods in the trace with their numbers, for a weigher of fragmentation.

    Together these kinds are 95 % of the pods. Source: the FGD simulator.

    Raises:
        TraceError: a file cannot be read, or a line is invalid.
    """
    pods = read_pods(directory / PODS)
    kinds = Counter((pod.cpu_milli, pod.memory_mib, pod.gpus, pod.gpu_milli, pod.models) for pod in pods)
    found: list[TypicalRequest] = []
    for (cpu, memory, gpus, milli, models), count in kinds.most_common():
        if sum(each.share for each in found) >= _TYPICAL * len(pods):
            break
        traits = tuple(map(model_trait, models))
        amounts = {CPU: cpu, "MEMORY_MB": memory}
        found.append(TypicalRequest(float(count), amounts, gpus, milli if gpus else 0, traits))
    return found


def read_nodes(path: Path) -> list[OpenbNode]:
    """Return the nodes of a node list, in its order.

    Raises:
        TraceError: the file cannot be read, or a line is invalid.
    """
    nodes: dict[str, OpenbNode] = {}
    for row in read_rows(path, ("sn", "cpu_milli", "memory_mib", "gpu", "model")):
        node = OpenbNode(
            name=_new_name(row, "sn", nodes),
            cpu_milli=row.number("cpu_milli", least=1),
            memory_mib=row.number("memory_mib", least=1),
            gpus=row.number("gpu", most=MAX_GPUS),
            model=row["model"],
        )
        if node.gpus:
            _check_model(row, node.model)
        nodes[node.name] = node
    return list(nodes.values())


def read_pods(path: Path) -> list[Pod]:
    """Return the pods of a pod list, in its order.

    Raises:
        TraceError: the file cannot be read, or a line is invalid.
    """
    pods: dict[str, Pod] = {}
    columns = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")
    for row in read_rows(path, (*columns, "creation_time", "deletion_time")):
        gpus = row.number("num_gpu", most=MAX_GPUS)
        pod = Pod(
            name=_new_name(row, "name", pods),
            cpu_milli=row.number("cpu_milli"),
            memory_mib=row.number("memory_mib"),
            gpus=gpus,
            # The trace has shares only for pods with one GPU. Pods with several take whole ones.
            gpu_milli=row.number("gpu_milli", least=1, most=WHOLE_GPU) if gpus == 1 else WHOLE_GPU,
            models=tuple(row["gpu_spec"].split("|")) if gpus and row["gpu_spec"] else (),
            created=row.number("creation_time"),
            deleted=row.number("deletion_time") if row["deletion_time"] else None,
        )
        for model in pod.models:
            _check_model(row, model)
        if pod.deleted is not None and pod.deleted < pod.created:
            raise row.line.wrong("deletion_time is before creation_time", row["deletion_time"])
        if not (pod.cpu_milli or pod.memory_mib or pod.gpus):
            raise row.line.wrong("the pod asks for nothing", pod.name)
        pods[pod.name] = pod
    return list(pods.values())


def _new_name(row: TraceRow, column: str, taken: Iterable[str]) -> str:
    name = row[column]
    if not name or name in taken:
        raise row.line.wrong(f"{column} is there twice" if name else f"{column} is missing", name)
    return name


def _check_model(row: TraceRow, model: str) -> None:
    if not model_trait(model):
        raise row.line.wrong("not the name of a GPU model", model)


@cache
def model_trait(model: str) -> str:
    """Return the trait of a GPU model, for example ``CUSTOM_GPU_V100M32``; empty if it has no valid trait."""
    normal = re.sub(r"[^A-Z0-9]+", "_", model.upper()).strip("_")
    trait = f"CUSTOM_GPU_{normal}"
    return trait if normal and len(trait) <= MAX_NAME else ""


def host(node: OpenbNode) -> Host:
    """Return the host that represents a node."""
    gpus = (
        Child(f"gpu{number}", {GPU: WHOLE_GPU}, (model_trait(node.model),)) for number in range(node.gpus)
    )
    return Host(node.name, WorkloadHostTree({CPU: node.cpu_milli, "MEMORY_MB": node.memory_mib}, tuple(gpus)))


def request(pod: Pod) -> WorkloadRequest:
    """Return the request that represents a pod."""
    return WorkloadRequest(
        at=pod.created,
        project_id=_project_id(),
        flavor=_flavor(pod.cpu_milli, pod.memory_mib, pod.gpus, pod.gpu_milli),
        lifetimes=(None if pod.deleted is None else pod.deleted - pod.created,),
        requested_resources=_gpu_groups(pod.gpus, pod.gpu_milli, pod.models),
    )


@cache
def _project_id() -> str:
    return project_id("openb")


@cache
def _flavor(cpu_milli: int, memory_mib: int, gpus: int, gpu_milli: int) -> Flavor:
    extra_specs = {"resources:VCPU": "0", "resources:DISK_GB": "0", f"resources:{CPU}": str(cpu_milli)}
    name = f"cpu{cpu_milli}-mem{memory_mib}"
    if gpus:
        name += f"-gpu{gpus}x{gpu_milli}"
    if gpus > 1:
        extra_specs["group_policy"] = "isolate"
    return Flavor(name, -(-cpu_milli // 1000), memory_mib, extra_specs=extra_specs)


@cache
def _gpu_groups(gpus: int, gpu_milli: int, models: tuple[str, ...]) -> tuple[RequestGroup, ...]:
    required = (frozenset(map(model_trait, models)),) if models else ()
    return tuple(
        RequestGroup({GPU: gpu_milli}, suffix=f"_gpu{number}", required=required) for number in range(gpus)
    )
