"""What must hold of the project itself, whatever it does."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import roost

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUNTIME: list[str] = PYPROJECT["project"]["dependencies"]
DEVELOPMENT: list[str] = PYPROJECT["dependency-groups"]["dev"]
LOCKS = (
    "requirements.lock",
    "requirements-dev.lock",
    "requirements-keystone.lock",
    "src/roost/bench/peer-requirements.lock",
)


def read_pins(lock: str) -> dict[str, list[str]]:
    """The versions a lock file pins, by canonical name; one project may have a version for each Python."""
    pins: dict[str, list[str]] = {}
    for line in (ROOT / lock).read_text().splitlines():
        if "==" in line and not line.startswith((" ", "#")):
            pinned = Requirement(line.removesuffix("\\").strip())
            versions = [spec.version for spec in pinned.specifier]
            pins.setdefault(canonicalize_name(pinned.name), []).extend(versions)
    return pins


def test_package_and_project_have_the_same_version() -> None:
    assert roost.__version__ == PYPROJECT["project"]["version"]


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_names_no_address(lock: str) -> None:
    assert "://" not in (ROOT / lock).read_text()


@pytest.mark.parametrize(
    ("lock", "declared"),
    [("requirements.lock", RUNTIME), ("requirements-dev.lock", RUNTIME + DEVELOPMENT)],
)
def test_lock_satisfies_every_declared_requirement(lock: str, declared: list[str]) -> None:
    pins = read_pins(lock)
    for requirement in map(Requirement, declared):
        versions = pins.get(canonicalize_name(requirement.name), [])
        assert versions, f"{lock} does not pin {requirement.name}: run `make lock`"
        assert all(map(requirement.specifier.contains, versions)), f"{lock} is behind {requirement}"


def test_tests_run_on_the_versions_that_are_deployed() -> None:
    deployed, tested = read_pins("requirements.lock"), read_pins("requirements-dev.lock")
    assert deployed == {name: tested.get(name) for name in deployed}


def test_rooms_import_only_what_they_may() -> None:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
