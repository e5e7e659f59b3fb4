"""Runs the commands of a guide: its blocks marked ``bash``, in order, in one shell that ends at a failure.

A guide is written for a fresh Debian machine and root. Here its ports, folders and database server are
replaced, and programs that change a machine (apt-get, service, runuser, ...) by ones that do not. A block
``bash needs=PROGRAM`` runs only where that program is installed; blocks of other languages do not run.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from roost.bench.loopback import free_port
from roost.bench.server_process import find_program
from support.waiting import patience

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
BLOCK = re.compile(r"^```(?P<language>\w+)(?P<marks>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

STUBS = {
    # Packages are there, or the blocks that need them do not run.
    "apt-get": "exit 0",
    "systemctl": "exit 0",
    "systemd-sysusers": "exit 0",
    "chown": "exit 0",
    # The test's own server runs already; Prometheus is started as its service would be.
    "service": '[ "$1" != prometheus ] || exec "$HERE/bin/start-prometheus"',
    # runuser -u ACCOUNT -- COMMAND: the test's server asks for no password.
    "runuser": 'export PGUSER=$2; shift 3; exec "$@"',
    "start-prometheus": (
        'setsid prometheus --config.file="$HERE/etc/prometheus/prometheus.yml" '
        '--storage.tsdb.path="$HERE/prometheus" --web.listen-address="127.0.0.1:$PROMETHEUS_PORT" '
        '> "$HERE/prometheus.log" 2>&1 & echo $! >> "$HERE/pids"'
    ),
}


FOLDERS = (
    "etc/roost", "etc/prometheus", "etc/default", "etc/bash_completion.d", "etc/systemd/system",
    "var/log/roost", "var/lib/roost", "opt/roost", "usr/local/bin", "usr/lib/sysusers.d",
)  # fmt: skip
OF_THE_MACHINE = re.compile(
    r"(?<![\w./])/(?=(?:etc|opt/roost|var/log/roost|var/lib/roost|usr/local|usr/lib/sysusers\.d)\b)"
)
"""The beginning of each path that a guide may write to."""

ENDING = """end() { kill $(jobs -p) $(cat "$HERE/pids" 2> /dev/null) 2> /dev/null || true; wait; }
trap end EXIT
"""


class Block(NamedTuple):
    language: str
    marks: str
    text: str


def blocks(guide: str) -> list[Block]:
    return [Block(*found.groups()) for found in BLOCK.finditer((ROOT / guide).read_text())]


def commands(guide: str) -> str:
    """The commands of a guide that can run here, as one script."""
    script = []
    for language, marks, text in blocks(guide):
        needed = re.findall(r"needs=(\S+)", marks)
        if language == "bash" and all(find_program(name) for name in needed):
            script.append(text)
    assert script, f"{guide} has no commands"
    return "\n".join(script)


class Machine:
    """A folder that stands for a machine: it has /etc, /opt, /var and /usr. Each port is a free one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports: dict[str, int] = {}
        stubs = folder / "bin"
        stubs.mkdir()
        for name, script in STUBS.items():
            (stubs / name).write_text(f"#!/bin/bash\n{script}\n")
            (stubs / name).chmod(0o755)
        for path in FOLDERS:
            (folder / path).mkdir(parents=True)
        (folder / "packaging").symlink_to(ROOT / "packaging")
        (folder / "opt/roost/bin").symlink_to(BIN)
        self.environment = {
            **os.environ,
            "PATH": f"{stubs}:{BIN}:{os.environ['PATH']}",
            "HERE": str(folder),
            "PROMETHEUS_PORT": str(self.port("9090")),
            "PYTHONWARNINGS": "ignore",
        }

    def port(self, written: str) -> int:
        """The free port that stands for one of a guide."""
        return self.ports.setdefault(written, free_port())

    def here(self, script: str) -> str:
        """A script with the ports and folders of this machine."""
        script = re.sub(r"\b(?:9090|910\d|87[789]\d)\b", lambda found: str(self.port(found[0])), script)
        return OF_THE_MACHINE.sub(f"{self.folder}/", script)

    def run(self, script: str, seconds: float = 280.0) -> str:
        """Run a script; processes that it leaves in the background end with it. Return what it printed.

        ``seconds``: those that it has on a quiet machine.
        """
        # Installing is tested with the Containerfile; here the environment of the tests is the installation.
        script = re.sub(r"^\S*(?:python3 -m venv|bin/pip install) .*\n", "", script, flags=re.MULTILINE)
        command = ["bash", "-euo", "pipefail", "-c", ENDING + self.here(script)]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=patience(seconds),
            check=False,
        )
        logs = "".join(path.read_text() for path in self.folder.rglob("*.log"))
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}\n{logs}"
        return done.stdout
