"""The scheduler's options, from a configuration file."""

from pathlib import Path

import pytest
from oslo_config import cfg

from roost.model.errors import OperatorError
from roost.scheduler.configuration import all_options, options_from
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugin_options import MetricsOptions


def options(folder: Path, *lines: str) -> SchedulerOptions:
    path = folder / "roost.conf"
    path.write_text("\n".join(["[filter_scheduler]", *lines]))
    conf = cfg.ConfigOpts()
    conf(args=[], project="roost", default_config_files=[str(path)])
    return options_from(conf)


def test_without_any_they_are_the_defaults(tmp_path: Path) -> None:
    assert options(tmp_path) == SchedulerOptions()


def test_all_of_them(tmp_path: Path) -> None:
    found = options(
        tmp_path,
        "enabled_filters = ComputeFilter, AvailabilityZoneFilter",
        "available_filters = nova.scheduler.filters.all_filters",
        "available_filters = some.package.MineFilter",
        "weight_classes = RAMWeigher, nova.scheduler.weights.metrics.MetricsWeigher",
        "host_subset_size = 5",
        "service_down_time = 90.5",
        "max_claims_per_instance = 7",
        "max_candidates_per_host = 0",
        "max_run_seconds = 2.5",
        "host_list_seconds = 30",
        "default_availability_zone = home",
        "ram_weight_multiplier = -1.5",
        "cpu_weight_multiplier = 2",
        "[metrics]",
        "weight_multiplier = 3",
        "weight_setting = heat=-0.5, power=2",
        "required = false",
        "weight_of_unavailable = -7",
    )
    assert found == SchedulerOptions(
        filters=("ComputeFilter", "AvailabilityZoneFilter"),
        available_filters=("nova.scheduler.filters.all_filters", "some.package.MineFilter"),
        weighers=("RAMWeigher", "nova.scheduler.weights.metrics.MetricsWeigher"),
        host_subset_size=5,
        service_down_time=90.5,
        max_claims_per_instance=7,
        max_candidates_per_host=0,
        max_run_seconds=2.5,
        host_list_seconds=30.0,
        default_availability_zone="home",
        multipliers={"RAMWeigher": -1.5, "MetricsWeigher": 3.0},
        plugins={"MetricsWeigher": MetricsOptions({"heat": -0.5, "power": 2.0}, False, -7.0)},
    )


@pytest.mark.parametrize(
    ("group", "line", "text"),
    [
        ("filter_scheduler", "ram_weight_multiplier = many", "many"),
        ("filter_scheduler", "ram_weight_multiplier = nan", "ram_weight_multiplier: nan is not a number"),
        ("metrics", "[metrics]\nweight_setting = heat=inf", "weight_setting, heat: inf is not a number"),
        ("metrics", "[metrics]\nweight_setting = heat:1", "weight_setting"),
        ("metrics", "[metrics]\nweight_of_unavailable = -inf", "weight_of_unavailable"),
        ("filter_scheduler", "host_subset_size = 0", "host_subset_size"),
        ("filter_scheduler", "host_subset_size = some", "host_subset_size"),
        ("filter_scheduler", "service_down_time = -1", "service_down_time"),
        ("filter_scheduler", "max_claims_per_instance = -1", "max_claims_per_instance"),
        ("filter_scheduler", "max_candidates_per_host = many", "max_candidates_per_host"),
        ("filter_scheduler", "max_run_seconds = -0.5", "max_run_seconds"),
    ],
)
def test_bad_value_is_one_clear_error(tmp_path: Path, group: str, line: str, text: str) -> None:
    with pytest.raises(OperatorError, match=rf"^options \[{group}\]: ") as error:
        options(tmp_path, line)
    assert text in str(error.value)
    assert "\n" not in str(error.value)


def test_every_plugin_that_is_built_in_lists_its_options() -> None:
    listed = all_options()
    assert {"ram_weight_multiplier", "enabled_filters"} <= {each.dest for each in listed["filter_scheduler"]}
    assert {each.dest for each in listed["metrics"]} == {
        "weight_multiplier",
        "weight_setting",
        "required",
        "weight_of_unavailable",
    }
