"""Filters and weighers found by name."""

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType

import pytest

from roost.model.errors import OperatorError
from roost.scheduler import Scheduler, SchedulerOptions, plugins
from roost.scheduler.errors import UnknownPlugin
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.hosts import HostTable
from roost.scheduler.options import DEFAULT_FILTERS, DEFAULT_WEIGHERS
from support.offering import Free, Only


class Renamed(Only):
    def __init__(self) -> None:
        super().__init__(0, name="mine")


class Broken:
    def __init__(self) -> None:
        raise RuntimeError("no licence")


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if another package had registered some."""
    module = ModuleType("some_package")
    module.__dict__.update(Renamed=Renamed, Free=Free, Broken=Broken)
    monkeypatch.setitem(sys.modules, "some_package", module)
    registered = EntryPoints(
        [
            EntryPoint("mine", "some_package:Renamed", "roost.filters"),
            EntryPoint("compute_up", "some_package:Renamed", "roost.filters"),
            EntryPoint("broken", "some_package:Broken", "roost.filters"),
            EntryPoint("gone", "package_that_is_gone:Filter", "roost.filters"),
            EntryPoint("weigher", "some_package:Free", "roost.filters"),
            EntryPoint("free", "some_package:Free", "roost.weighers"),
        ]
    )
    monkeypatch.setattr(plugins, "entry_points", registered.select)
    plugins.plugin.cache_clear()
    yield
    plugins.plugin.cache_clear()


def test_built_ins_are_found() -> None:
    assert tuple(each.name for each in plugins.filters(DEFAULT_FILTERS)) == DEFAULT_FILTERS
    assert tuple(each.name for each in plugins.weighers(DEFAULT_WEIGHERS)) == DEFAULT_WEIGHERS


@pytest.mark.usefixtures("packages")
def test_those_of_other_packages_are_found_by_entry_point() -> None:
    assert isinstance(plugins.filters(["mine"])[0], Renamed)
    assert isinstance(plugins.weighers(["free"])[0], Free)


@pytest.mark.usefixtures("packages")
def test_another_package_may_take_the_place_of_a_built_in() -> None:
    assert isinstance(plugins.filters(["compute_up"])[0], Renamed)


@pytest.mark.parametrize("name", ["nothing", "os.path", "", "__init__", "../x", "ram"])
def test_unknown_filter_is_one_clear_error(name: str) -> None:
    with pytest.raises(
        UnknownPlugin, match=r"option enabled_filters may name aggregate_extra_specs, "
    ) as error:
        plugins.filters([name])
    assert isinstance(error.value, OperatorError)
    assert f"there is no filter named {name!r}" in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_weigher() -> None:
    with pytest.raises(
        UnknownPlugin, match="no weigher named 'compute_up': option enabled_weighers may name"
    ):
        plugins.weighers(["compute_up"])


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("broken", "filter 'broken' cannot be loaded from some_package:Broken: no licence"),
        ("gone", "filter 'gone' cannot be loaded from package_that_is_gone:Filter: No module named"),
        ("weigher", "'weigher' is no filter: it lacks depends_on_claims, mask"),
    ],
)
def test_plugin_that_cannot_be_used(name: str, text: str) -> None:
    with pytest.raises(UnknownPlugin, match=text):
        plugins.filters([name])


def test_scheduler_does_not_start_with_an_unknown_plugin() -> None:
    with pytest.raises(UnknownPlugin):
        Scheduler(
            LocalGateway(None, lambda n: 0),  # type: ignore[arg-type]
            HostTable(),
            None,  # type: ignore[arg-type]
            SchedulerOptions(filters=("nothing",)),
        )
