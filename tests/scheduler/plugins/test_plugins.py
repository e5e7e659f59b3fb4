"""Filters and weighers found by name, and made with their options."""

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest
from oslo_config import cfg
from structlog.testing import capture_logs

from roost.model.aggregate import HostAggregate
from roost.model.errors import OperatorError
from roost.model.spec import ServerGroup
from roost.scheduler import Scheduler, SchedulerOptions
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.configuration import options_from
from roost.scheduler.errors import BadOptions, SchedulerFault, UnknownPlugin
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import DEFAULT_FILTERS
from roost.scheduler.plugins import plugin_names
from roost.scheduler.plugins.plugin_calls import verdict
from roost.scheduler.plugins.plugin_class import FILTER, WEIGHER, PluginClass
from roost.scheduler.plugins.plugin_names import built_ins
from roost.scheduler.plugins.plugin_options import PluginOptions
from roost.scheduler.plugins.plugins import Filter, Plugins
from roost.scheduler.pool.weights import HostWeights, multiplier_of
from roost.scheduler.request.scheduling_request import GroupPlacement, progress_at_start
from roost.scheduler.selection.host_pools import HostPools
from support.clouds import report, spec, table_of
from support.offering import Free, MadeUp, Only, named_filters, named_weighers, scheduling_request


class Renamed(Only):
    name = "mine"

    def __init__(self) -> None:
        super().__init__(0, name="mine")


class Free2(Free):
    name = "Free2"


class Broken:
    name = "broken"

    def __init__(self) -> None:
        raise RuntimeError("no licence")

    def mask(self, hosts: object, request: object, progress: object) -> None:
        return None


class Quiet(msgspec.Struct, frozen=True):
    most_decibels: float = 40.0


class QuietFilter(Only):
    name = "QuietFilter"
    OPTIONS = PluginOptions("quiet", (cfg.FloatOpt("most_decibels", default=40.0),), Quiet)

    def __init__(self, options: Quiet) -> None:
        super().__init__(0, name="QuietFilter")
        self.options = options


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if another package had registered some."""
    module = ModuleType("some_package")
    module.__dict__.update(Renamed=Renamed, Free=Free2, Broken=Broken, QuietFilter=QuietFilter)
    monkeypatch.setitem(sys.modules, "some_package", module)
    registered = EntryPoints(
        [
            EntryPoint("mine", "some_package:Renamed", "roost.filters"),
            EntryPoint("ComputeFilter", "some_package:Renamed", "roost.filters"),
            EntryPoint("broken", "some_package:Broken", "roost.filters"),
            EntryPoint("gone", "package_that_is_gone:Filter", "roost.filters"),
            EntryPoint("weigher", "some_package:Free", "roost.filters"),
            EntryPoint("free", "some_package:Free", "roost.weighers"),
        ]
    )
    monkeypatch.setattr(plugin_names, "registered", lambda kind: registered.select(group=f"roost.{kind}s"))
    yield


def test_built_ins_are_found_by_name_and_by_novas_import_path() -> None:
    wanted = tuple(name for name in DEFAULT_FILTERS if name != "ComputeFilter")
    assert tuple(each.name for each in named_filters(*wanted)) == wanted
    path = "nova.scheduler.filters.aggregate_instance_extra_specs.AggregateInstanceExtraSpecsFilter"
    assert [each.name for each in named_filters(path)] == ["AggregateInstanceExtraSpecsFilter"]
    assert [each.name for each in named_weighers("nova.scheduler.weights.ram.RAMWeigher")] == ["RAMWeigher"]
    everything = [each.name for each in named_weighers("nova.scheduler.weights.all_weighers")]
    assert {"RAMWeigher", "CPUWeigher", "MetricsWeigher"} <= set(everything)
    assert named_weighers("nova.scheduler.weights.all_weighers", "RAMWeigher")[-1].name == everything[-1]


@pytest.mark.parametrize("kind", [FILTER, WEIGHER])
def test_every_built_in_is_found_by_its_name(kind: str) -> None:
    named = named_filters if kind == FILTER else named_weighers
    for each in built_ins(kind):
        if each.name != "ComputeFilter":
            assert isinstance(named(each.name)[0].plugin, each.make)


def test_those_of_other_packages_are_found_by_entry_point() -> None:
    assert isinstance(named_filters("mine")[0].plugin, Renamed)
    assert isinstance(named_weighers("free")[0].plugin, Free)


def test_another_package_may_take_the_place_of_a_built_in() -> None:
    assert isinstance(named_filters("ComputeFilter")[0].plugin, Renamed)


def test_class_is_found_by_its_import_path_and_by_its_last_word() -> None:
    assert isinstance(named_filters("some_package.Renamed")[0].plugin, Renamed)
    assert isinstance(named_filters("some_package:Renamed")[0].plugin, Renamed)
    available = ("nova.scheduler.filters.all_filters", "some_package.QuietFilter")
    options = SchedulerOptions(filters=("QuietFilter", "AvailabilityZoneFilter"), available_filters=available)
    assert [each.name for each in Plugins.enabled(options).filters] == [
        "QuietFilter",
        "AvailabilityZoneFilter",
    ]


@pytest.mark.parametrize(
    "name", ["nothing", "", "__init__", "../x", "RAMWeigher", "nova.scheduler.filters.x.Y"]
)
def test_unknown_filter_is_one_clear_error(name: str) -> None:
    with pytest.raises(
        UnknownPlugin, match=r"option enabled_filters may name AggregateImagePropertiesIsolation, "
    ) as error:
        named_filters(name)
    assert isinstance(error.value, OperatorError)
    assert f"there is no filter named {name!r}" in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_weigher() -> None:
    with pytest.raises(
        UnknownPlugin, match="no weigher named 'ComputeFilter': option weight_classes may name"
    ):
        named_weighers("ComputeFilter")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("broken", "broken of .* cannot be made: no licence"),
        ("gone", "filter 'gone' cannot be loaded from package_that_is_gone:Filter: No module named"),
        ("weigher", "'weigher' is no filter: it lacks mask"),
        ("no_such_package.Filter", "filter 'no_such_package.Filter' cannot be loaded: No module named"),
        ("os.path", "'os.path' is no filter: it is no class"),
    ],
)
def test_plugin_that_cannot_be_used(name: str, text: str) -> None:
    with pytest.raises(UnknownPlugin, match=text):
        named_filters(name)


def test_plugin_of_an_earlier_protocol_is_refused_with_what_to_change() -> None:
    class HasDomain:
        name = "HasDomain"

        def mask(self, hosts: object, request: object, progress: object) -> None:
            """All pass."""

        def domain(self, hosts: object) -> None:
            """Whole racks."""

    class Inherits(Filter):
        name = "Inherits"

    with pytest.raises(UnknownPlugin, match="say reads_other_hosts = True"):
        PluginClass.of(FILTER, HasDomain)
    with pytest.raises(UnknownPlugin, match="does not inherit from Filter or Weigher"):
        PluginClass.of(FILTER, Inherits)


def test_scheduler_does_not_start_with_an_unknown_plugin() -> None:
    with pytest.raises(UnknownPlugin):
        Scheduler(LocalGateway(None, HostPools(NodeTable(), SchedulerOptions(filters=("nothing",)))), None)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("CoreFilter", ("remove the filter", "cpu_allocation_ratio = 10000.0")),
        ("RamFilter", ("remove the filter", "ram_allocation_ratio = 10000.0")),
        ("nova.scheduler.filters.disk_filter.DiskFilter", ("disk_allocation_ratio = 10000.0",)),
        ("AggregateCoreFilter", ("The aggregate metadata cpu_allocation_ratio has no effect",)),
        ("RetryFilter", ("alternates", "remove the filter")),
        ("TypeAffinityFilter", ("AggregateTypeAffinityFilter",)),
    ],
)
def test_filter_that_nova_removed_is_left_out_with_a_warning(name: str, texts: tuple[str, ...]) -> None:
    with capture_logs() as logs:
        assert [each.name for each in named_filters(name, "AvailabilityZoneFilter")] == [
            "AvailabilityZoneFilter"
        ]
    [line] = logs
    assert (line["log_level"], line["filter"]) == ("warning", name)
    for text in texts:
        assert text in line["instead"]


def conf_of(text: str, folder: Path) -> cfg.ConfigOpts:
    path = folder / "roost.conf"
    path.write_text(text)
    conf = cfg.ConfigOpts()
    conf(args=[], project="roost", default_config_files=[str(path)])
    return conf


QUIET = "[filter_scheduler]\nenabled_filters = some_package.QuietFilter\n"


def test_plugin_is_made_with_the_options_of_its_own_section(tmp_path: Path) -> None:
    [plugin] = Plugins.enabled(
        options_from(conf_of(f"{QUIET}[quiet]\nmost_decibels = 20\n", tmp_path))
    ).filters
    assert isinstance(plugin.plugin, QuietFilter)
    assert plugin.plugin.options == Quiet(20.0)
    [plugin] = Plugins.enabled(options_from(conf_of(QUIET, tmp_path))).filters
    assert isinstance(plugin.plugin, QuietFilter)
    assert plugin.plugin.options == Quiet(40.0)
    with pytest.raises(BadOptions, match=r"^options \[quiet\]: .*most_decibels"):
        options_from(conf_of(f"{QUIET}[quiet]\nmost_decibels = loud\n", tmp_path))


class QuietHosts:
    """As it is written for Nova."""

    run_filter_once_per_request = True
    RUN_ON_REBUILD = True

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        wanted = spec_obj.get_scheduler_hint("noise", "any")
        return bool(wanted == "any" or host_state.stats.get("noise") == wanted)


class SmallestWeigher:
    minval = 0

    def _weigh_object(self, host_state: Any, request_spec: Any) -> float:
        return float(len(host_state.host) + request_spec.num_instances)


class Base:
    """What plugins of other packages inherit from Nova, as far as they use it."""

    minval = None
    maxval: float | None = None
    RUN_ON_REBUILD = False
    run_filter_once_per_request = False


class LicencedHosts(Base):
    """Hosts in an aggregate with a licence that the flavor's extra spec asks for, with a disk to match."""

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        wanted = spec_obj.flavor.extra_specs.get("acme:licence")
        licences = {each.metadata.get("licence") for each in host_state.aggregates}
        return wanted in (None, *licences) and bool(host_state.free_disk_mb >= spec_obj.root_gb * 1024)


class ApartHosts(Base):
    """Hosts without a member of the group, of whatever policy, and without a hot sensor."""

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        group = spec_obj.instance_group
        hot = any(each.name == "heat" and each.value > 80 for each in host_state.metrics)
        return not hot and (group is None or host_state.host not in group.hosts)


class CoolWeigher(Base):
    """Cool hosts by a multiplier of their own: twice as much for QEMU."""

    maxval = 50

    def weight_multiplier(self, host_state: Any) -> float:
        return 2.0 if host_state.hypervisor_type == "QEMU" else 1.0

    def _weigh_object(self, host_state: Any, weight_properties: Any) -> float:
        return 100 - max((each.value for each in host_state.metrics if each.name == "heat"), default=0.0)


class HotWeigher(CoolWeigher):
    def weight_multiplier(self, host_state: Any) -> float:
        return float(host_state.metrics.get("no such"))


class Raising(QuietHosts):
    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        return bool(host_state.no_such_attribute)


def test_plain_class_that_is_asked_about_one_host_at_a_time() -> None:
    hosts = [report("one", "n0", stats={"noise": "low"}), report("three", "n1", stats={"noise": "high"})]
    view = HostView(NodeTable(hosts), MadeUp([1, 1]))
    asked = scheduling_request(of=spec(scheduler_hints={"noise": ("low",)}))
    [quiet] = named_filters(f"{__name__}.QuietHosts")
    assert (quiet.name, quiet.depends_on_claims, quiet.runs_on_rebuild) == ("QuietHosts", False, True)
    for of, passing in ((asked, [True, False]), (scheduling_request(), [True, True])):
        mask = quiet.mask(view, of, GroupPlacement())
        assert mask is not None
        assert mask.tolist() == passing
    [smallest] = named_weighers(f"{__name__}.SmallestWeigher")
    assert (smallest.multiplier_key, smallest.minval) == ("smallest_weight_multiplier", 0.0)
    raw = smallest.raw(view, scheduling_request(), GroupPlacement())
    assert raw is not None
    assert raw.tolist() == [4.0, 6.0]
    [raising] = named_filters(f"{__name__}.Raising")
    with pytest.raises(SchedulerFault, match="filter Raising failed on host one: AttributeError"):
        verdict(raising, view, asked, GroupPlacement())


OUT_OF_TREE = [
    report(
        "h0",
        "n0",
        hypervisor_type="QEMU",
        free_disk_mb=20_480,
        metrics={"heat": 90.0},
        aggregates=(HostAggregate("a", "a", {"licence": "gold"}),),
    ),
    report("h1", "n1", free_disk_mb=20_480, metrics={"heat": 60.0}),
    report("h2", "n2", hypervisor_type="QEMU", free_disk_mb=5_000),
]


@pytest.mark.parametrize(
    ("name", "wanted", "passing"),
    [
        ("LicencedHosts", {"extra_specs": {"acme:licence": "gold"}}, [True, False, False]),
        ("LicencedHosts", {}, [True, True, False]),
        ("ApartHosts", {}, [False, True, True]),
        ("ApartHosts", {"group": ServerGroup("g", "soft-affinity", ("h2",))}, [False, True, False]),
    ],
)
def test_filters_of_other_packages(name: str, wanted: dict[str, Any], passing: list[bool]) -> None:
    table = table_of(OUT_OF_TREE)
    [plugin] = named_filters(f"{__name__}.{name}")
    asked = scheduling_request(of=spec(**wanted))
    mask = plugin.mask(HostView(table, MadeUp([1, 1, 1])), asked, progress_at_start(asked, table))
    assert mask is not None
    assert mask.tolist() == passing


def test_weigher_of_another_package_has_multipliers_and_a_greatest_number() -> None:
    view = HostView(table_of(OUT_OF_TREE), MadeUp([1, 1, 1]))
    [cool, hot] = named_weighers(f"{__name__}.CoolWeigher", f"{__name__}.HotWeigher")
    raw = cool.raw(view, scheduling_request(), GroupPlacement())
    assert raw is not None
    assert raw.tolist() == [10.0, 40.0, 50.0]
    assert np.asarray(multiplier_of(view, cool, scheduling_request())).tolist() == [2.0, 1.0, 2.0]
    everyone = np.ones(3, dtype=np.bool_)
    weighing = HostWeights(
        view.table, MadeUp([1, 1, 1]), everyone, [cool], scheduling_request(), GroupPlacement()
    )
    assert [weighing.weight(position) for position in range(3)] == [0.0, 0.75, 2.0]
    with pytest.raises(SchedulerFault, match="weigher HotWeigher failed on host h0: TypeError"):
        multiplier_of(view, hot, scheduling_request())
