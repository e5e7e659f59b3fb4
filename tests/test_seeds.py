"""Each nightly run tests other random cases, says which, and can be repeated."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.seeds import VARIABLE, nightly_seed

PROJECT = Path(__file__).parents[1]


@pytest.mark.nightly
def test_random_cases_of_this_run() -> None:
    """Prints what a nightly run draws; another test runs this one."""
    drawn = []

    @settings(max_examples=20)
    @given(st.integers())
    def draw(number: int) -> None:
        drawn.append(number)

    draw()
    print(f"drawn {nightly_seed()} {drawn}")


def nightly_run(folder: Path, **environment: str) -> tuple[str, str]:
    """The setting that a nightly run in ``folder`` names to repeat it, and what it drew."""
    options = ["-n", "0", "-s", "-m", "nightly", "-p", "no:cacheprovider"]
    test = f"{__file__}::{test_random_cases_of_this_run.__name__}"
    # Options of the run that this is a part of would change what the other one prints.
    left_out = (VARIABLE, "PYTEST_ADDOPTS")
    inherited = {name: value for name, value in os.environ.items() if name not in left_out}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-c", str(PROJECT / "pyproject.toml"), test],
        cwd=folder,  # Hypothesis keeps its examples in the current folder.
        env={**inherited, "CI": "true", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    [drawn] = re.findall(r"^drawn .*$", ran.stdout, re.MULTILINE)
    [setting] = re.findall(rf"{VARIABLE}=\d+", ran.stdout)
    return setting, drawn


def test_each_night_has_other_cases_and_names_how_to_repeat_them(tmp_path: Path) -> None:
    first, drawn_first = nightly_run(tmp_path)
    second, drawn_second = nightly_run(tmp_path)
    assert first != second
    assert drawn_first != drawn_second
    repeated = nightly_run(tmp_path, **{VARIABLE: first.partition("=")[2]})
    assert repeated == (first, drawn_first)
