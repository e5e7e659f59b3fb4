"""``/v1/changes`` as a stream of events, from a real server of two workers on a port of its own."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.placement_api import allocation, uuid_of
from support.serving import HEADERS, SECONDS, Serving
from support.waiting import Deadline

A = uuid_of("a")
STREAM = {"x-auth-token": "admin", "accept": "text/event-stream"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    served = Serving(f"sqlite:///{tmp_path / 'roost.db'}", tmp_path / "log", workers=2)
    body = {"name": "a", "uuid": A}
    assert served.ask("POST", "/resource_providers", body).status_code == 200
    inventory = {"inventories": {"VCPU": {"total": 1000}}, "resource_provider_generation": 0}
    assert served.ask("PUT", f"/resource_providers/{A}/inventories", inventory).status_code == 200
    yield served
    served.end(signal.SIGKILL)


def claim(server: Serving, name: str) -> None:
    body = allocation({A: {"VCPU": 1}})
    assert server.ask("PUT", f"/allocations/{uuid_of(name)}", body).status_code == 204


def head(server: Serving) -> int:
    found: int = server.ask("GET", "/v1/changes?limit=1").json()["head"]
    return found


class Events:
    """A client of the stream in a thread: ``commits`` as they come, until the server ends it."""

    def __init__(self, server: Serving, after: int = 0, **headers: str) -> None:
        self.commits: list[dict[str, Any]] = []
        self.comments: list[str] = []
        self.history = ""
        self.ended_cleanly = False
        self.status = 0
        self._url = f"{server.url}/v1/changes?after={after}"
        self._headers = {**STREAM, **{name.replace("_", "-"): value for name, value in headers.items()}}
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        with httpx.stream("GET", self._url, headers=self._headers, timeout=SECONDS) as answer:
            self.status = answer.status_code
            assert answer.headers["content-type"].startswith("text/event-stream")
            number = ""
            for line in answer.iter_lines():
                kind, _, value = line.partition(": ")
                if kind == "id":
                    number, _, self.history = value.partition("@")
                elif kind == "data":
                    self.commits.append(json.loads(value))
                    assert str(self.commits[-1]["seq"]) == number
                elif line.startswith(":"):
                    self.comments.append(line)
        self.ended_cleanly = True

    def numbers(self) -> list[int]:
        return [commit["seq"] for commit in self.commits]

    def wait_for(self, seq: int) -> None:
        until = Deadline(SECONDS)
        while not self.commits or self.commits[-1]["seq"] < seq:
            assert not until.passed, self.numbers()
            time.sleep(0.02)

    def join(self) -> None:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


def test_streams_follow_commits_of_all_workers_and_end_with_the_server(server: Serving) -> None:
    streams = [Events(server) for _ in range(6)]
    for number in range(30):
        claim(server, f"c{number}")
    newest = head(server)
    for stream in streams:
        stream.wait_for(newest)
    # Of two workers, each has made some of the commits, as every request has a connection of its own.
    again = Events(server, last_event_id=f"{newest - 3}@{streams[0].history}")
    again.wait_for(newest)
    server.end(signal.SIGTERM)
    for stream in [*streams, again]:
        stream.join()
        assert stream.ended_cleanly  # and not killed
    assert all(stream.numbers() == list(range(1, newest + 1)) for stream in streams)
    assert again.numbers() == [newest - 2, newest - 1, newest]
    assert streams[0].commits[-1]["changes"][0]["holds"] == {A: {"VCPU": 1}}


def test_a_client_that_does_not_read_holds_nobody_up(server: Serving) -> None:
    def stalled() -> httpx.Response:
        request = clients.build_request("GET", f"{server.url}/v1/changes", headers=STREAM)
        return clients.send(request, stream=True)

    with httpx.Client(headers=HEADERS, timeout=SECONDS) as clients:
        answers = [stalled() for _ in range(4)]
        for number in range(50):
            claim(server, f"s{number}")
        stream = Events(server)
        stream.wait_for(head(server))
        assert stream.numbers() == list(range(1, len(stream.commits) + 1))
        for answer in answers:
            answer.close()
    server.end(signal.SIGTERM)
    stream.join()


def test_a_position_that_is_gone_or_yet_to_come_is_no_stream(server: Serving) -> None:
    with httpx.Client(base_url=server.url, headers=STREAM, timeout=SECONDS) as client:
        answer = client.get("/v1/changes?after=99999")
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/json")
        assert client.get("/v1/changes", headers={"last-event-id": "99999"}).status_code == 400
