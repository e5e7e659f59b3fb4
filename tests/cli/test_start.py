"""Each command imports what it needs, also where no other command has been imported before."""

import subprocess

import pytest

from roost.cli.main import COMMANDS
from support.processes import ROOST


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_starts_by_itself(name: str) -> None:
    done = subprocess.run([ROOST, name, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Usage: roost {name} ")
