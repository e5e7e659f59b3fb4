"""A private Prometheus server for tests, from the installed programs, at a free loopback port."""

import contextlib
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import yaml

from roost.bench.loopback import free_port
from roost.bench.server_process import die_with_parent, find_program
from support.waiting import Deadline

PROMETHEUS = find_program("prometheus")
PROMTOOL = find_program("promtool")
SECONDS = 60.0


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run promtool and wait for its end."""
    assert PROMTOOL is not None
    return subprocess.run([PROMTOOL, *map(str, arguments)], capture_output=True, text=True, check=False)


class Prometheus:
    """Prometheus, which scrapes targets (host:port) of some jobs every second. A context manager."""

    def __init__(self, folder: Path, jobs: Mapping[str, Sequence[str]], rules: Sequence[Path] = ()) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        configuration = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(path) for path in rules],
            "scrape_configs": [
                {"job_name": job, "static_configs": [{"targets": list(targets)}]}
                for job, targets in jobs.items()
            ],
        }
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
        self._log = folder / "prometheus.log"
        assert PROMETHEUS is not None
        command = [
            PROMETHEUS,
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=folder, preexec_fn=die_with_parent
            )

    def __enter__(self) -> "Prometheus":
        until = Deadline(SECONDS)
        while True:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/-/ready", trust_env=False).status_code == 200:
                    return self
            if self._process.poll() is not None or until.passed:
                self.__exit__()
                raise AssertionError(f"Prometheus does not start:\n{self._log.read_text()[-3000:]}")
            time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, query: str) -> list[dict[str, Any]]:
        """Return the series that an expression has now; fail with Prometheus' words if it cannot be used."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": query}, trust_env=False).json()
        assert answer["status"] == "success", f"{query}: {answer.get('error')}"
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """The rules of all groups, with their states."""
        groups = httpx.get(f"{self.url}/api/v1/rules", trust_env=False).json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]
