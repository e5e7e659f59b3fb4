"""The program and the commands of README.md work as they stand."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from roost.bench.loopback import free_port
from roost.cli.main import COMMANDS
from support.processes import ROOST
from support.waiting import Deadline, patience

README = (Path(__file__).parents[1] / "README.md").read_text()
SHELL = re.compile(r"(?:^    .+\n(?:\n(?=    ))?)+", flags=re.MULTILINE)
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


def run(command: list[str | Path], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=patience(120), check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_program_runs_again_and_again(tmp_path: Path) -> None:
    [program] = re.findall(r"^```python\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "example.py").write_text(program)
    for _ in range(2):
        lines = run([sys.executable, "example.py"], tmp_path).splitlines()
        assert len(lines) == 2
        for line in lines:
            selected, alternate = re.findall(r"compute-[123]", line)
            assert selected != alternate


@dataclass
class Reader:
    """A newcomer who types the commands of a section as they stand, in order, in one shell.

    Only the ports differ, as others may be taken, and the home is a folder of the test. ``curl`` fails where
    the answer is an error.
    """

    folder: Path

    def types(self, section: str) -> str:
        """Return all that the commands print. The shell ends with the first that fails."""
        [part] = [each for each in re.split(r"^## ", README, flags=re.MULTILINE) if each.startswith(section)]
        script = "\n".join(SHELL.findall(part)).replace("    make venv\n", "")
        free = {port: str(free_port()) for port in ("8778", "8779")}
        script = re.sub(r"\b877[89]\b", lambda port: free[port.group()], script)
        # Its default is the port of the README.
        script = script.replace("roost ask ", f"roost ask --url http://localhost:{free['8779']} ")
        script = script.replace("curl -s ", "curl -sSf ").replace(".venv/bin/roost", str(ROOST))
        homes = {name: str(self.folder) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
        done = subprocess.run(
            ["bash", "-ec", f"trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"],
            cwd=self.folder,
            env={**os.environ, **homes},
            capture_output=True,
            text=True,
            timeout=patience(240),
            check=False,
        )
        logs = "".join(path.read_text() for path in self.folder.glob("roost-*.log"))
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{logs}"
        return done.stdout


@needs_curl
def test_the_whole_system_is_tried_in_one_shell(tmp_path: Path) -> None:
    shown = Reader(tmp_path).types("Try it")
    assert '"allocation_requests"' in shown
    assert "agree with the tables" in shown
    listed = set(re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", shown))
    assert len(listed) >= 6


def test_the_placement_service_alone_starts(tmp_path: Path) -> None:
    [line] = re.findall(r"`(OS_API__AUTH_STRATEGY=\S+) (roost serve [^`]*)`", README)
    variable, command = line
    port = free_port()
    arguments = command.replace("8778", str(port)).split()[1:]
    environment = {**os.environ, **dict([variable.split("=")])}
    server = subprocess.Popen([ROOST, *arguments], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    try:
        assert answers(f"http://127.0.0.1:{port}/")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(patience(30))


def answers(url: str, seconds: float = 60.0) -> bool:
    until = Deadline(seconds)
    while not until.passed:
        try:
            return httpx.get(url).status_code == 200
        except httpx.TransportError:
            time.sleep(0.05)
    return False


@needs_curl
def test_the_platform_without_openstack_is_tried_in_one_shell(tmp_path: Path) -> None:
    """Its hosts are registered, asked for and claimed; the last request is refused with the reason."""
    shown = Reader(tmp_path).types("A platform without OpenStack")
    assert "host-2" in shown
    assert "12 VCPU" in shown
    # The last record is that of the last request, which was refused.
    [record] = json.loads(shown[shown.index('{"records"') :].splitlines()[0])["records"]
    assert record["run"]["refusal"], record
    assert "has 4 of the 12 VCPU wanted" in shown


def test_every_target_of_make_is_one() -> None:
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    for target in re.findall(r"^    make (\w+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


@pytest.mark.parametrize(
    "room", sorted(p.name for p in (Path(__file__).parents[1] / "src/roost").iterdir() if p.is_dir())
)
def test_the_table_of_folders_names_every_room(room: str) -> None:
    table = README[README.index("## Where things are") :]
    assert room == "__pycache__" or f"`{room}`" in table


def test_the_table_of_commands_names_every_command() -> None:
    named = set(re.findall(r"^\| `roost ([\w-]+)", README, flags=re.MULTILINE))
    assert named == set(COMMANDS)
