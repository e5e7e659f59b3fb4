"""The manifest of everything runs: first the tables, then processes whose probes pass, and that work."""

from pathlib import Path

import httpx
import pytest

from install.manifests import FOLDER, read
from install.pods import Node
from support.forked import run_forked
from support.processes import SECONDS, run_roost


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(read((FOLDER / "whole.yaml").read_text()), tmp_path)


def test_the_processes_of_the_manifest_work_together(node: Node) -> None:
    tokens = node.file("/etc/roost/tokens.toml")
    tokens.unlink()
    added = run_roost("token", "add", "operator", "--role", "admin", "--file", tokens)
    token = added.stdout.strip()
    assert token, added.stderr
    with node:
        node.run_job()
        node.start()
        conductor = node.pod("roost-conductor").url("http")
        asking = {**node.environment, "ROOST_URL": conductor, "ROOST_TOKEN": token}
        for cell in ("rack1", "rack2"):
            done = run_forked("cell", "add", cell, env=asking, seconds=SECONDS)
            assert done.returncode == 0, done.stderr
        listed = httpx.get(f"{conductor}/v1/cells", headers={"X-Auth-Token": token}).json()["cells"]
        states = {each["name"]: (each["state"], each["conductors"]) for each in listed}
        assert states == {"cell0": ("up", 1), "rack1": ("up", 1), "rack2": ("up", 1)}
        for pod in node.pods:
            assert "roost_build_info" in httpx.get(f"{pod.url('metrics')}/metrics").text
            assert pod.probe("liveness") == 200
        dashboard = node.pod("roost-dashboard").url("http")
        assert httpx.get(f"{dashboard}/ui/login").status_code == 200
        assert httpx.get(f"{dashboard}/ui/login", headers={"Host": "elsewhere.example"}).status_code == 421
        assert {pod.name: pod.stop() for pod in node.pods} == {pod.name: 0 for pod in node.pods}
