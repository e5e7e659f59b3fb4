"""The examples of docs/api-v1.md, run as they stand against real servers."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from roost.conductor.http import PATHS
from roost.scheduler.api.operations import PATHS as SCHEDULING
from support.processes import RoostUp
from support.serving import Serving
from support.waiting import patience

PAGE = Path(__file__).parents[3] / "docs" / "api-v1.md"
LINES = [line.strip() for line in PAGE.read_text().splitlines() if line.startswith("    ")]
EXAMPLES = [line for line in LINES if line.startswith("curl")]
OF_CONDUCTORS = [line for line in EXAMPLES if any(f"$U{path}" in line for path in (*PATHS, *SCHEDULING))]

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")


def run(examples: list[str], url: str) -> None:
    settings = "\n".join(line for line in LINES if not line.startswith("curl"))
    settings = settings.replace("localhost:8778", url)
    for example in examples:
        script = f"{settings}\n{example}"
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, timeout=patience(60), check=False
        )
        assert done.stdout and '"errors"' not in done.stdout, (example, done)
        assert done.returncode == (28 if "--max-time" in example else 0)


def test_the_examples_of_placement_work(tmp_path: Path) -> None:
    examples = [line for line in EXAMPLES if line not in OF_CONDUCTORS]
    assert len(examples) == 6
    server = Serving(f"sqlite:///{tmp_path / 'roost.db'}", tmp_path / "log")
    try:
        run(examples, server.url)
    finally:
        server.end(signal.SIGKILL)


def test_the_examples_of_conductors_work(tmp_path: Path) -> None:
    assert len(OF_CONDUCTORS) == 16
    with RoostUp(tmp_path / "data") as server:
        server.wait_until_up()
        run(OF_CONDUCTORS, f"127.0.0.1:{server.port}")
