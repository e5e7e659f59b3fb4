"""``roost up`` serves ``/v1`` too, and each path goes to whoever it is of."""

import threading
from pathlib import Path

import httpx

from support.processes import RoostUp
from support.waiting import patience

STREAM = {"accept": "text/event-stream"}


def test_each_path_is_answered_by_its_own_and_streams_end(tmp_path: Path) -> None:
    with RoostUp(tmp_path, ("--hosts", "3", "--cells", "1")) as up:
        up.wait_until_up()
        with up.client() as client:
            described = client.get("/v1/openapi.json").json()["paths"]
            assert {"/v1/instances", "/v1/instances/{uuid}", "/v1/changes"} <= set(described)
            wanted = {"flavor": {"vcpus": 4, "memory_mb": 64}}
            assert client.post("/v1/instances", json=wanted).status_code == 202
            assert len(client.get("/v1/instances").json()["instances"]) == 1
            assert client.get("/v1/instances/nobody").status_code == 404
            for path in ("/v1", "/v1/", "/v1/instancesx", "/v1x"):
                assert client.get(path).status_code == 404
            page = client.get("/v1/allocation_candidates?resources=VCPU:1&limit=2").json()
            rest = client.get(f"/v1/allocation_candidates?resources=VCPU:1&cursor={page['next']}").json()
            assert len(page["allocation_requests"] + rest["allocation_requests"]) == 3
            explained = client.get("/v1/explain?resources=VCPU:9999").json()
            assert explained["misses"][0]["text"].startswith("wants 9999 VCPU, has ")
            assert client.get("/resource_providers").status_code == 200
        lines: list[str] = []
        begun = threading.Event()

        def follow() -> None:
            url = f"http://127.0.0.1:{up.port}/v1/changes"
            headers = {"x-auth-token": "admin", **STREAM}
            with httpx.stream("GET", url, headers=headers, timeout=patience(120)) as answer:
                for line in answer.iter_lines():
                    lines.append(line)
                    begun.set()

        following = threading.Thread(target=follow)
        following.start()
        assert begun.wait(120)
        status, _ = up.stop()
        following.join(120)
        assert (status, not following.is_alive()) == (0, True)
        assert any(line.startswith("id: 1@") for line in lines)
