"""The example in the docstring of `Scheduler` is a complete program: it runs as it stands."""

import inspect
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from roost.scheduler import Scheduler
from support.waiting import patience

NODE = "5c1d8e6a-0000-4000-8000-00000000000"
EXPECTED = [
    f"compute-1 claimed: {{'{NODE}1': {{'VCPU': 2, 'MEMORY_MB': 2048}}}}; alternate: compute-3",
    f"compute-2 claimed: {{'{NODE}2': {{'VCPU': 2, 'MEMORY_MB': 2048}}}}; alternate: compute-3",
    "refused: only 4 of 5 instances fit: none of 3 hosts has 2 VCPU free; "
    "the closest, compute-1, has 0 of the 2 VCPU wanted",
]


def test_example(tmp_path: Path) -> None:
    _, _, program = inspect.getdoc(Scheduler).partition("Example::\n\n")  # type: ignore[union-attr]
    example = tmp_path / "example.py"
    example.write_text(dedent(program))
    run = subprocess.run(
        [sys.executable, example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(120),
    )
    assert run.stdout.splitlines() == EXPECTED, run.stderr
