"""Runs the containers of a manifest as processes: a folder stands for the file systems of the pods.

Paths of mounts become folders, ports become free ones, names of services become 127.0.0.1, and databases
become SQLite files. All else is as the manifest has it: arguments, files of ConfigMaps and Secrets, probes.
"""

import os
import re
import signal
from pathlib import Path

import httpx

from install.manifests import Container, Manifest, containers, mounted
from roost.bench.loopback import free_port
from support.forked import Forked, run_forked
from support.waiting import Deadline, patience

SECONDS = 120.0
DATABASE = re.compile(r"\bpostgresql\+psycopg://\S+/(\w+)")


class Pod:
    """A running container with its probes. ``ports``: its ports here, by their names in the manifest."""

    def __init__(self, node: "Node", container: Container) -> None:
        self.container = container
        self.name: str = container.owner["metadata"]["name"]
        self.ports = {port["name"]: free_port() for port in container.spec["ports"]}
        self.log = node.folder / f"{self.name}.log"
        arguments = node.arguments(container)
        main = next(port for name, port in self.ports.items() if name != "metrics")
        arguments += ["--port", str(main)]
        if "metrics" in self.ports:
            arguments[arguments.index("--metrics-port") + 1] = str(self.ports["metrics"])
        node.services[self.name] = main
        self._node, self._arguments = node, arguments
        self._process: Forked | None = None

    def start(self) -> None:
        with self.log.open("wb") as log:
            self._process = Forked(*self._arguments, stdout=log, stderr=log, env=self._node.environment)

    def probe(self, kind: str) -> int | None:
        """The status that a probe gets; None: no connection."""
        asked = self.container.spec[f"{kind}Probe"]["httpGet"]
        url = f"{asked['scheme'].lower()}://127.0.0.1:{self.ports[asked['port']]}{asked['path']}"
        try:
            return httpx.get(url, timeout=patience(30), trust_env=False).status_code
        except httpx.TransportError:
            return None

    def wait_until_ready(self) -> None:
        assert self._process is not None
        until = Deadline(SECONDS)
        while self.probe("startup") != 200 or self.probe("readiness") != 200:
            assert self._process.poll() is None and not until.passed, f"{self.name}: {self.log.read_text()}"

    def url(self, port: str) -> str:
        return f"http://127.0.0.1:{self.ports[port]}"

    def stop(self) -> int:
        """End it as Kubernetes does, and return its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return int(self._process.wait(patience(60)))

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Node:
    """A folder in which the containers of a manifest run. ``services``: their ports by name."""

    def __init__(self, manifests: list[Manifest], folder: Path) -> None:
        self.folder = folder
        self.services: dict[str, int] = {}
        self._manifests = manifests
        self.environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
        for path in ("tmp", "var/lib/roost", "etc/roost"):
            (folder / path).mkdir(parents=True)
        self.pods = [Pod(self, each) for each in self._containers("Deployment")]
        for each in containers(manifests):
            self._mount(each)

    def _containers(self, kind: str) -> list[Container]:
        return [each for each in containers(self._manifests) if each.owner["kind"] == kind]

    def _here(self, text: str) -> str:
        """A text with the folders, services and databases of this node."""
        text = DATABASE.sub(rf"sqlite:///{self.folder}/\1.db", text)
        for name, port in self.services.items():
            text = re.sub(rf"\b{name}:\d+", f"127.0.0.1:{port}", text)
        return re.sub(r"(?<![\w.:/])/(?=etc/roost|var/lib/roost)", f"{self.folder}/", text)

    def _mount(self, container: Container) -> None:
        for path, text in mounted(self._manifests, container).items():
            (self.folder / path.lstrip("/")).write_text(self._here(text))

    def arguments(self, container: Container) -> list[str]:
        return [self._here(each).replace("0.0.0.0", "127.0.0.1") for each in container.arguments]

    def file(self, path: str) -> Path:
        return self.folder / path.lstrip("/")

    def run_job(self) -> None:
        """Run the containers of the Job, one after the other."""
        for each in self._containers("Job"):
            done = run_forked(*self.arguments(each), env=self.environment, seconds=SECONDS)
            assert done.returncode == 0, f"{each.label}: {done.stdout}{done.stderr}"

    def start(self) -> None:
        for pod in self.pods:
            pod.start()
        for pod in self.pods:
            pod.wait_until_ready()

    def pod(self, name: str) -> Pod:
        [found] = [each for each in self.pods if each.name == name]
        return found

    def __enter__(self) -> "Node":
        return self

    def __exit__(self, *_: object) -> None:
        for pod in self.pods:
            pod.kill()
