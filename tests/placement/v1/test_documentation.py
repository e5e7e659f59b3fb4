"""The examples of docs/api-v1.md, run as they stand against a real server."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from support.serving import Serving

PAGE = Path(__file__).parents[3] / "docs" / "api-v1.md"


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_the_examples_work(tmp_path: Path) -> None:
    lines = [line.strip() for line in PAGE.read_text().splitlines() if line.startswith("    ")]
    examples = [line for line in lines if line.startswith("curl")]
    assert len(examples) == 5
    server = Serving(f"sqlite:///{tmp_path / 'roost.db'}", tmp_path / "log")
    try:
        settings = "\n".join(line for line in lines if not line.startswith("curl"))
        settings = settings.replace("localhost:8778", server.url)
        for example in examples:
            script = f"{settings}\n{example}"
            done = subprocess.run(
                ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False
            )
            assert done.stdout and '"errors"' not in done.stdout, (example, done)
            assert done.returncode == (28 if "--max-time" in example else 0)
    finally:
        server.end(signal.SIGKILL)
