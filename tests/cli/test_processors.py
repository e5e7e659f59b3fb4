"""The number of workers that `--workers auto` starts."""

import os
from pathlib import Path

from roost.cli.workers import count_processors


def group(folder: Path, quota: str) -> Path:
    """The root of a hierarchy with a quota, as a container sees its own group."""
    (folder / "cpu.max").write_text(quota)
    return folder


def test_a_quota_is_rounded_up_and_never_more_than_the_affinity(tmp_path: Path) -> None:
    available = len(os.sched_getaffinity(0))
    assert count_processors(group(tmp_path, "max 100000\n")) == available
    assert count_processors(group(tmp_path, "20000 100000\n")) == 1
    assert count_processors(group(tmp_path, "150000 100000\n")) == min(2, available)
    assert count_processors(group(tmp_path, f"{available * 300000} 100000\n")) == available


def test_without_cgroups_the_affinity_counts(tmp_path: Path) -> None:
    every = os.sched_getaffinity(0)
    assert count_processors(tmp_path / "none") == len(every)
    os.sched_setaffinity(0, {min(every)})
    try:
        assert count_processors(tmp_path / "none") == 1
    finally:
        os.sched_setaffinity(0, every)
