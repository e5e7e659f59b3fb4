"""The program and the commands of README.md work as they stand."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from roost.bench.loopback import free_port
from roost.cli.main import COMMANDS
from support.processes import ROOST, RoostUp
from support.waiting import Deadline, patience

README = (Path(__file__).parents[1] / "README.md").read_text()
SHELL = re.findall(r"(?:^    .+\n(?:\n(?=    ))?)+", README, flags=re.MULTILINE)


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


def block_with(text: str) -> str:
    [block] = [each for each in SHELL if text in each]
    return block


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_beside_a_running_system_work(tmp_path: Path) -> None:
    [start] = re.findall(r"^ +\.venv/bin/roost up (.*)$", block_with("roost up"), flags=re.MULTILINE)
    options = start.split()
    assert options[:4] == ["--port", "8778", "--data-dir", "./roost-data/up"]
    with RoostUp(tmp_path / "roost-data/up", options[4:]) as system:
        system.wait_until_up()
        script = block_with("/v1/instances").replace("localhost:8778", f"localhost:{system.port}")
        script = script.replace("curl -s ", "curl -sSf ").replace(".venv/bin/roost", str(ROOST))
        shown = run(["bash", "-ec", script], tmp_path)
    assert '"allocation_requests"' in shown
    assert "agree with the tables" in shown


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
        server.wait(30)


def answers(url: str, seconds: float = 60.0) -> bool:
    until = Deadline(seconds)
    while not until.passed:
        try:
            return httpx.get(url).status_code == 200
        except httpx.TransportError:
            time.sleep(0.05)
    return False


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_platform_without_openstack_works(tmp_path: Path) -> None:
    """Its hosts are registered, asked for and claimed; the last request is refused with the reason."""
    ports = {"8778": str(free_port()), "8779": str(free_port())}

    def moved(text: str) -> str:
        for old, new in ports.items():
            text = text.replace(f"localhost:{old}", f"localhost:{new}").replace(
                f"--port {old}", f"--port {new}"
            )
        return text.replace(".venv/bin/roost", str(ROOST))

    starts = moved(block_with("roost scheduler")).replace("\\\n", " ").strip().splitlines()
    assert len(starts) == 2
    script = moved(block_with("for n in 1 2")).replace("curl -s ", "curl -sSf ")
    script = script.replace("ask ", f"ask --scheduler http://localhost:{ports['8779']} ")
    servers = [
        subprocess.Popen(["bash", "-c", f"exec env {each.strip()}"], cwd=tmp_path, stderr=subprocess.DEVNULL)
        for each in starts
    ]
    try:
        for path in ("8778", "8779"):
            assert answers(f"http://127.0.0.1:{ports[path]}/healthz")
        shown = run(["bash", "-ec", script], tmp_path)
    finally:
        for each in servers:
            each.send_signal(signal.SIGTERM)
        for each in servers:
            each.wait(30)
    assert "host-2" in shown
    assert "12 VCPU" in shown
    assert '"runs"' in shown or '"records"' in shown


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
