"""Nova's own classes, which tests compare the scheduler with, in a process of their own environment.

`make nova` installs Nova 34.0.0 into ``.venv/nova`` from requirements-nova.lock. Its packages would change
the behaviour of libraries that Roost uses. The variable ROOST_NOVA_PYTHON names another interpreter.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from roost.bench.server_process import die_with_parent

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "tests" / "nova" / "upstream" / "server.py"
VARIABLE = "ROOST_NOVA_PYTHON"
ENVIRONMENT = ROOT / ".venv" / "nova"
NOT_INSTALLED = f"NOT tested: Nova's classes ({ENVIRONMENT.relative_to(ROOT)} is missing: run make nova)"


def nova_python() -> Path | None:
    """The interpreter that has Nova; None if it is not installed."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    return ENVIRONMENT / "bin" / "python" if (ENVIRONMENT / ".installed").exists() else None


class NovaError(Exception):
    """What a function of Nova raised. ``kind`` is the name of the exception's class."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class Nova:
    """A process with Nova's classes. It starts with the first question and answers one after the other.

    Nova writes what it logs to ``log``.
    """

    def __init__(self, python: Path, log: Path) -> None:
        self._python = python
        self._log = log
        self._process: subprocess.Popen[str] | None = None

    def ask(self, module: str, function: str, /, **arguments: Any) -> Any:
        """What a function of a module of tests/nova/upstream returns; arguments and answer are JSON.

        Raises:
            NovaError: the function raised.
        """
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps([module, function, arguments]) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise AssertionError(f"Nova's process ended: {self._log.read_text()[-2000:]}")
        error, answer = json.loads(line)
        if error is not None:
            raise NovaError(*error)
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [self._python, "-u", SERVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=die_with_parent,
            )
        return self._process
