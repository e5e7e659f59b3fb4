"""The scheduler's options, from a configuration file."""

from pathlib import Path

import pytest
from oslo_config import cfg

from roost.model.errors import OperatorError
from roost.scheduler.options import SchedulerOptions, options_from


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
        "enabled_filters = compute_up, availability_zone",
        "enabled_weighers = ram",
        "host_subset_size = 5",
        "service_down_time = 90.5",
        "default_availability_zone = home",
        "weight_multipliers = ram:-1.5,cpu:2",
        "metrics_weight_setting = heat:-0.5",
        "weight_of_unavailable = -7",
    )
    assert found == SchedulerOptions(
        filters=("compute_up", "availability_zone"),
        weighers=("ram",),
        host_subset_size=5,
        service_down_time=90.5,
        default_availability_zone="home",
        multipliers={"ram": -1.5, "cpu": 2.0},
        metrics_weights={"heat": -0.5},
        weight_of_unavailable=-7.0,
    )


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("weight_multipliers = ram:many", "weight_multipliers, ram: 'many' is not a number to weigh with"),
        ("weight_multipliers = ram:nan", "weight_multipliers, ram: 'nan' is not a number"),
        ("metrics_weight_setting = heat:inf", "metrics_weight_setting, heat: 'inf' is not a number"),
        ("weight_of_unavailable = -inf", "weight_of_unavailable: -inf is not a number"),
        ("host_subset_size = 0", "host_subset_size"),
        ("host_subset_size = some", "host_subset_size"),
        ("service_down_time = -1", "service_down_time"),
    ],
)
def test_bad_value_is_one_clear_error(tmp_path: Path, line: str, text: str) -> None:
    with pytest.raises(OperatorError, match=r"^options \[filter_scheduler\]: ") as error:
        options(tmp_path, line)
    assert text in str(error.value)
    assert "\n" not in str(error.value)
