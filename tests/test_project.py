"""The project: versions, lock files, the wheel, and the order of its rooms."""

import ast
import email
import re
import subprocess
import sys
import tomllib
import zipfile
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import roost
from support.waiting import patience

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUNTIME: list[str] = PYPROJECT["project"]["dependencies"]
BENCH: list[str] = PYPROJECT["project"]["optional-dependencies"]["bench"]
REDFISH: list[str] = PYPROJECT["project"]["optional-dependencies"]["redfish"]
NOVA: list[str] = PYPROJECT["project"]["optional-dependencies"]["nova"]
DEVELOPMENT: list[str] = PYPROJECT["dependency-groups"]["dev"]
LOCKS = (
    "requirements.lock",
    "requirements-dev.lock",
    "requirements-build.lock",
    "requirements-libvirt.lock",
    "requirements-keystone.lock",
    "requirements-nova.lock",
    "src/roost/bench/peer-requirements.lock",
)


def read_pins(lock: str) -> dict[str, list[str]]:
    """Return the pinned versions of each project, by canonical name; several if Python versions differ."""
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
    [
        ("requirements.lock", RUNTIME),
        ("requirements-dev.lock", RUNTIME + BENCH + REDFISH + NOVA + DEVELOPMENT),
        ("requirements-libvirt.lock", PYPROJECT["project"]["optional-dependencies"]["libvirt"]),
        ("requirements-build.lock", PYPROJECT["build-system"]["requires"]),
    ],
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
    build = read_pins("requirements-build.lock")
    assert build == {name: tested.get(name) for name in build}


NOT_IMPORTED = {
    "pymysql": "SQLAlchemy loads it for mysql+pymysql://",
    "python-memcached": "keystonemiddleware loads it for memcached_servers",
    "uvloop": "Granian loads it in workers",
}
"""Runtime dependencies that no module of Roost imports, with their purpose."""
NAMESPACES = ("opentelemetry",)
"""Packages whose modules come from many distributions; this one is the extra `tracing`."""


def test_what_the_package_imports_is_what_it_depends_on() -> None:
    distributions = packages_distributions()
    imported: set[str] = set()
    for path in (ROOT / "src/roost").rglob("*.py"):
        modules = re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), flags=re.MULTILINE)
        names = [name for name in modules if name not in NAMESPACES]
        imported |= {canonicalize_name(each) for name in names for each in distributions.get(name, ())}
    declared = {canonicalize_name(Requirement(each).name) for each in RUNTIME + BENCH + REDFISH + NOVA}
    assert imported - {"roost"} - declared == set()
    assert declared - imported == set(NOT_IMPORTED)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of this tree, as an installer reads it."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    [path] = folder.glob("*.whl")
    print(f"{path.name}: {path.stat().st_size / 1024:,.0f} KiB")
    return zipfile.ZipFile(path)


def test_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    package = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src/roost").rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".pyo")
    }
    assert "roost/py.typed" in package
    assert {path for path in package if "/migrations/versions/" in path}
    assert {path for path in package if path.endswith((".json", ".lock"))}
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == package


def test_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = email.message_from_bytes(wheel.read(name))
    assert metadata["Name"] == "roost" and metadata["Version"] == roost.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == PYPROJECT["project"]["requires-python"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload(decode=True) == (ROOT / "README.md").read_bytes()
    assert metadata["Keywords"] and "Typing :: Typed" in metadata.get_all("Classifier", [])


def test_a_production_install_needs_neither_matplotlib_nor_opentelemetry(wheel: zipfile.ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = email.message_from_bytes(wheel.read(name))
    needed = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    plain = [
        canonicalize_name(each.name)
        for each in needed
        if each.marker is None or each.marker.evaluate({"extra": ""})
    ]
    assert "sqlalchemy" in plain and "matplotlib" not in plain
    assert metadata.get_all("Provides-Extra") == ["bench", "libvirt", "nova", "redfish", "tracing"]
    assert "matplotlib" not in read_pins("requirements.lock")
    assert not [name for name in (*plain, *read_pins("requirements.lock")) if "opentelemetry" in name]


WITHOUT_MATPLOTLIB = """
import sys
sys.modules["matplotlib"] = None
from roost.cli.main import main
main()
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay", "demo", "--data-dir", "data"),
        ("bench", "all", "results", "--dir", "data"),
        ("bench", "filters", "--plot", "filters.png", "--dir", "data"),
    ],
)
def test_without_matplotlib_a_plot_is_refused_before_any_work(tmp_path: Path, arguments: list[str]) -> None:
    answer = run_without_matplotlib(tmp_path, *arguments)
    assert answer.returncode == 2
    assert (
        answer.stderr.startswith("roost: plots need matplotlib") and "install roost[bench]" in answer.stderr
    )
    assert answer.stderr.count("\n") == 1 and answer.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay", "demo", "--bins", "1", "--no-plot", "--data-dir", "data"),
        ("bench", "filters", "--hosts", "60", "--duration", "0.01", "--dir", "data"),
    ],
)
def test_without_matplotlib_all_but_the_plot_works(tmp_path: Path, arguments: list[str]) -> None:
    answer = run_without_matplotlib(tmp_path, *arguments)
    assert answer.returncode == 0, answer.stderr
    assert "plot:" not in answer.stdout


def run_without_matplotlib(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Roost in a process that cannot import matplotlib."""
    command = [sys.executable, "-c", WITHOUT_MATPLOTLIB, *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=patience(120), check=False
    )


def test_rooms_import_only_what_they_may() -> None:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_no_files_import_each_other_in_a_circle() -> None:
    """Imports in functions and those for types alone count too."""
    files = {
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / "src" / "roost").rglob("*.py")
    }
    imported: dict[str, set[str]] = {name: set() for name in files}
    for name, path in files.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module in files:
                modules = {f"{node.module}.{each.name}" for each in node.names}
                imported[name] |= (modules & files.keys()) or {node.module}
            elif isinstance(node, ast.Import):
                imported[name] |= {each.name for each in node.names} & files.keys()
    # Raises CycleError with the files of a circle.
    TopologicalSorter(imported).prepare()
