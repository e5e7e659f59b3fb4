"""The instructions of the Containerfile, and its first stage run without a container."""

import os
import re
import shutil
import site
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from support.waiting import patience

ROOT = Path(__file__).parents[2]


class Instruction(NamedTuple):
    """One instruction. ``stage``: the number of the FROM that it follows, from 1."""

    stage: int
    name: str
    value: str


def instructions() -> Iterator[Instruction]:
    """Read the Containerfile; continued lines are joined."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text())
    stage = 0
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, value = line.partition(" ")
            stage += name == "FROM"
            yield Instruction(stage, name, value.strip())


def build(folder: Path, offline: bool) -> Path:
    """Run the first stage in a folder instead of the container's root; return the folder that the image gets.

    Args:
        offline: the packages of the lock files come from this environment instead of an index.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    work = folder
    for _, name, value in (each for each in instructions() if each.stage == 1):
        if name == "WORKDIR":
            work = folder / value.lstrip("/")
            work.mkdir(parents=True)
        elif name == "ENV":
            environment |= dict(each.split("=", 1) for each in value.split())
        elif name == "COPY":
            *sources, target = value.split()
            for source in sources:
                copy(ROOT / source, work / target)
        elif name == "RUN":
            run(value, folder, work, environment, offline)
    return folder / "opt/roost"


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def run(command: str, folder: Path, work: Path, environment: dict[str, str], offline: bool) -> None:
    steps = []
    for step in command.split(" && "):
        step = re.sub(r"(?<![\w.])/(opt|wheels)\b", rf"{folder}/\1", step)
        step = re.sub(r"^python ", f"{sys.executable} ", step)
        if offline and "--require-hashes" in step:
            step = borrowed(step)
        if offline and "pip check" in step:
            continue  # it would judge the whole environment that the packages are borrowed from
        steps.append(step)
    done = subprocess.run(
        ["bash", "-ec", " && ".join(steps)],
        cwd=work, env=environment, capture_output=True, text=True, timeout=patience(900), check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def borrowed(install: str) -> str:
    """The step that makes the packages of this environment importable, instead of an installation."""
    python = Path(install.split()[0])
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    target = python.parents[1] / "lib" / version / "site-packages"
    # Only the folder: files of .pth in it, as that of the editable Roost, are not read from there.
    return f"echo {site.getsitepackages()[0]} > {target}/borrowed.pth"
