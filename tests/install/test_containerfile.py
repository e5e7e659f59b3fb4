"""The Containerfile: its first stage works, and the image is small, unprivileged and from no fixed place."""

import re
import subprocess
from pathlib import Path

import click
import pytest
from packaging.utils import canonicalize_name

import roost
from install.containerfile import ROOT, build, instructions
from roost.cli.main import roost_command
from test_project import read_pins


def values(name: str, stage: int | None = None) -> list[str]:
    return [each.value for each in instructions() if each.name == name and stage in (None, each.stage)]


def check_image(installed: Path) -> None:
    """Check the folder that the image gets: it has Roost, and nothing that only its build needs."""
    program = installed / "bin/roost"
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert roost.__version__ in shown.stdout
    subprocess.run([program, "config"], capture_output=True, check=True)
    python = installed / "bin/python"
    where = subprocess.run(
        [python, "-c", "import roost; print(roost.__file__)"], capture_output=True, text=True, check=True
    )
    assert Path(where.stdout.strip()).is_relative_to(installed)
    assert not (installed / "bin/pip").exists() and not (installed / "bin/hatchling").exists()


def test_the_first_stage_builds_and_installs_the_wheel(tmp_path: Path) -> None:
    check_image(build(tmp_path, offline=True))


@pytest.mark.nightly
def test_the_first_stage_installs_exactly_the_lock_from_the_index(tmp_path: Path) -> None:
    installed = build(tmp_path, offline=False)
    check_image(installed)
    program = "import importlib.metadata as m; print(*sorted(each.name for each in m.distributions()))"
    listed = subprocess.run(
        [installed / "bin/python", "-c", program], capture_output=True, text=True, check=True
    )
    names = {canonicalize_name(name) for name in listed.stdout.split()}
    pinned = set(read_pins("requirements.lock"))
    assert "roost" in names and names - pinned <= {"roost", "setuptools"}


def test_the_base_image_is_an_argument_with_a_short_name() -> None:
    [default] = [each for each in values("ARG", 0) if each.startswith("PYTHON_IMAGE=")]
    assert re.fullmatch(r"PYTHON_IMAGE=[a-z]+:[\w.-]+", default)
    assert [each.split()[0] for each in values("FROM")] == ["${PYTHON_IMAGE}", "${PYTHON_IMAGE}"]


def test_the_image_runs_a_command_of_roost_as_an_unprivileged_user() -> None:
    assert [each.stage for each in instructions()][-1] == 2
    [user] = values("USER", 2)
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user), (
        "a number, so that a cluster can check that it is not root"
    )
    assert values("ENTRYPOINT", 2) == ['["roost"]']
    [arguments] = values("CMD", 2)
    name, *rest = re.findall(r'"([^"]*)"', arguments)
    command = roost_command.get_command(click.Context(roost_command), name)
    assert command is not None
    command.make_context(name, rest)


def test_what_the_build_copies_is_not_ignored() -> None:
    allowed = {
        line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")
    }
    copied = {name for each in values("COPY", 1) for name in each.split()[:-1]}
    assert copied == allowed
    assert all((ROOT / name).exists() for name in copied)
