"""Each command imports what it needs, also where no other command has been imported before."""

import subprocess
import sys
from pathlib import Path

import pytest

from roost.cli.main import COMMANDS

LIBRARIES = (
    "falcon.asgi",
    "granian",
    "httpx",
    "numpy",
    "oslo_config.cfg",
    "oslo_policy.policy",
    "sqlalchemy",
)
"""What is imported once for all commands. Of Roost nothing is but the group of its commands."""

PROGRAM = """
import importlib, os, sys
for library in sys.argv[1:]:
    importlib.import_module(library)
from roost.cli.main import COMMANDS, main
for name in COMMANDS:
    if os.fork() == 0:
        output = os.open(name, os.O_CREAT | os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.argv = ["roost", name, "--help"]
        main()
    status = os.waitstatus_to_exitcode(os.wait()[1])
    with open(name, "a") as file:
        file.write(f"exit status {status}")
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what each command said in a process of its own."""
    folder = tmp_path_factory.mktemp("said")
    subprocess.run([sys.executable, "-c", PROGRAM, *LIBRARIES], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_starts_by_itself(said: Path, name: str) -> None:
    text = (said / name).read_text()
    assert text.endswith("exit status 0"), text
    assert text.startswith(f"Usage: roost {name} ")


ASKING = ("aggregate", "ask", "audit", "cell", "host", "instance", "node", "server-group", "service")
"""Commands that only ask a service, often in loops of scripts."""


def test_a_command_that_asks_a_service_imports_nothing_of_servers() -> None:
    program = (
        "import importlib, sys; [importlib.import_module(each) for each in sys.argv[1:]]; print(*sys.modules)"
    )
    modules = [COMMANDS[name].partition(":")[0] for name in ASKING]
    done = subprocess.run(
        [sys.executable, "-c", program, *modules], capture_output=True, text=True, check=True
    )
    assert not set(done.stdout.split()) & set(LIBRARIES) - {"httpx"}
