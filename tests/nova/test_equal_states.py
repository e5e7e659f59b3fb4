"""The hosts that Roost finds for Nova's request specs in Nova's databases are those that Nova finds there.

Nova's objects write the rows. Nova's host manager reads them, filters and weighs; the feed of the bridge
reads the same rows into a node table, and the scheduler's filters and weighers judge its nodes. Requests are
Nova's request specs as they go over the wire.

The cases of docs/differences.md are left out of the requests: test_filters_and_weighers.py has them.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from roost.scheduler.api.wire.language import NovaLanguage
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugin_calls import verdict
from roost.scheduler.plugins.plugin_class import FILTER, WEIGHER
from roost.scheduler.plugins.plugins import Plugins
from roost.scheduler.pool.weights import HostWeights
from support.nova import Nova
from support.nova_clouds import FedTable
from support.nova_comparison import Levels, cases, multipliers, ours_of
from support.nova_words import OWN_PROPERTY
from support.nova_worlds import CELLS, NEW_INSTANCE, Plain, hosts_and_requests, progress_of
from support.offering import scheduling_request

HOSTS = 25
REQUESTS = 25

METRICS = {"heat": "cpu.frequency", "power": "cpu.user.time"}
"""Metrics that Nova knows, for those of the plain hosts."""

REFUSALS = ("is invalid", "invalid literal", "invalid IPNetwork")
"""Texts of errors with which Nova refuses a request."""

LEFT_OUT = {
    "JsonFilter",  # a difference is met by most of its queries
    "ComputeCapabilitiesFilter",  # it raises where a number is compared with a text
}


def equal_world(seed: int) -> tuple[Sequence[Plain], Sequence[Plain]]:
    """Hosts that rows can tell of, and requests without the cases of docs/differences.md."""
    hosts, requests = hosts_and_requests(seed, HOSTS, REQUESTS)
    seen: set[str] = set()
    for host in hosts:
        host["silent"] = 500 if host["silent"] == 500 else 0
        host["cpu_allocation_ratio"] = 4.0
        host["free_disk_mb"] = host["free_disk_mb"] // 1024 * 1024
        host["metrics"] = {METRICS[name]: int(value) for name, value in host["metrics"].items()}
        host["pci_device_pools"] = [each for each in host["pci_device_pools"] if each["count"]]
        host["instances"] = {name: of for name, of in host["instances"].items() if name not in seen}
        seen |= host["instances"].keys()
    for request in requests:
        request["properties"].pop(OWN_PROPERTY, None)
        request["extra_specs"].pop("group_policy", None)
        request["hints"].pop("query", None)
        request["instance"] = NEW_INSTANCE
        if request["group"] is not None:
            request["group"]["members"][-1] = NEW_INSTANCE
    return hosts, requests


def chosen(seed: int) -> tuple[list[str], list[str], dict[str, dict[str, Any]]]:
    """Some filters, all weighers, and options with a multiplier of each."""
    draw = random.Random(seed)
    names = sorted({name for name, _ in cases(FILTER)} - LEFT_OUT)
    filters = ["ComputeFilter", *draw.sample([name for name in names if name != "ComputeFilter"], 3)]
    options = multipliers(draw)
    options["metrics"] = {
        **options["metrics"],
        "weight_setting": [f"{METRICS['heat']}=1.0", f"{METRICS['power']}=-0.5"],
    }
    options["filter_scheduler"]["track_instance_changes"] = False  # so that Nova reads the instances' rows
    return filters, list(dict.fromkeys(name for name, _ in cases(WEIGHER))), options


class NovaDatabases:
    """The databases that Nova has made, and the options of both schedulers."""

    def __init__(self, nova: Nova, folder: Path) -> None:
        self.nova = nova
        self.folder = folder
        self.urls: dict[str, str] = nova.ask("states", "create", folder=str(folder), cells=list(CELLS))

    def compare(self, seed: int) -> int:
        """Compare all requests of a seed. Returns the number of those that Nova answers."""
        hosts, requests = equal_world(seed)
        filters, weighers, options = chosen(seed)
        self.nova.ask("states", "fill", hosts=hosts)
        given = {"filters": filters, "weighers": weighers, "options": options}
        theirs = self.nova.ask("states", "scheduled", hosts=hosts, requests=requests, **given)
        kept = {
            name: of for name, of in options["filter_scheduler"].items() if name != "track_instance_changes"
        }
        ours = ours_of(
            {**options, "filter_scheduler": kept},
            self.folder / "roost.conf",
            enabled_filters=", ".join(filters),
            weight_classes=", ".join(weighers),
        )
        fed = FedTable(SimpleNamespace(urls=self.urls))  # type: ignore[arg-type]
        try:
            fed.refresh()
            fed.look()
            answered = 0
            for request, expected in zip(requests, theirs, strict=True):
                if isinstance(expected, str):
                    assert any(each in expected for each in REFUSALS), expected
                    continue
                answered += 1
                same(fed, hosts, request, expected, ours)
        finally:
            fed.close()
        return answered


def same(
    fed: FedTable, hosts: Sequence[Plain], request: Plain, expected: dict[str, Any], ours: SchedulerOptions
) -> None:
    """Compare the hosts that pass, and their order but for ties."""
    table = fed.table
    by_node = {each["node"]: each for each in hosts}
    in_order = [by_node[node] for node in table.nodes]
    offers = Levels(in_order)
    plugins = Plugins.enabled(ours)
    spec = NovaLanguage(table).read_spec(expected["spec"]).spec
    posed = scheduling_request(of=spec, **msgspec.structs.asdict(ours))
    posed = msgspec.structs.replace(posed, instances=(request["instance"],), now=0.0)
    progress = progress_of(request, in_order, posed, table)
    passing = np.ones(len(table), dtype=np.bool_)
    view = HostView(table, offers)
    try:
        masks = [verdict(each, view, posed, progress) for each in plugins.filters]
    except BadRequestSpec:
        masks = [~passing]  # Nova does not ask the filter that would refuse the request if no host is left
    for mask in masks:
        passing &= True if mask is None else mask
    where = request, [each.name for each in plugins.filters]
    found = {table.hosts[place] for place in np.flatnonzero(passing)}
    assert found == {host for host, _ in expected["hosts"]}, where
    if not found:
        return
    weighing = HostWeights(table, offers, passing, plugins.weighers, posed, progress)
    best = [(table.hosts[place], weighing.weight(place)) for place in weighing.best(len(found)).tolist()]
    by_name = dict(expected["hosts"])
    for (host, weight), (_, nova_weight) in zip(best, expected["hosts"], strict=True):
        assert weight == pytest.approx(by_name[host], rel=1e-9, abs=1e-6), (host, where)
        assert weight == pytest.approx(nova_weight, rel=1e-9, abs=1e-6), ("another order, and no tie", where)


@pytest.fixture(scope="module")
def databases(nova: Nova, tmp_path_factory: pytest.TempPathFactory) -> NovaDatabases:
    return NovaDatabases(nova, tmp_path_factory.mktemp("states"))


@pytest.mark.parametrize("seed", range(2))
def test_same_hosts_pass_in_the_same_order(databases: NovaDatabases, seed: int) -> None:
    assert databases.compare(seed) > 0


@pytest.mark.nightly
def test_five_thousand_requests_find_the_same_hosts_in_the_same_order(databases: NovaDatabases) -> None:
    answered, seed = 0, 1000
    while answered < 5_000:
        answered += databases.compare(seed)
        seed += 1
