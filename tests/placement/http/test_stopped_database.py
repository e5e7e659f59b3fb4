"""The database server hangs (SIGSTOP): its kernel still answers, and nothing above it does."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from roost.bench.server_process import ServerProcess
from roost.web.errors import OutcomeUncertain
from support.databases import Servers
from support.ledgers import upgrade
from support.placement_api import allocation, uuid_of
from support.servers import Galera
from support.serving import SECONDS, Serving
from support.stopping import stopped
from support.waiting import Deadline, wait_for

HOST = uuid_of("host")
NOT_FOR_LONG = "placement_database.answer_timeout=2"
FOR_HOURS = "placement_database.answer_timeout=7200"


class Database(NamedTuple):
    server: ServerProcess
    url: str


@pytest.fixture(params=["postgresql", "mariadb"])
def database(request: pytest.FixtureRequest, servers: Servers) -> Iterator[Database]:
    """A database on a server of its own, for a test that stops it."""
    server = servers.new(request.param, f"stopped-{request.param}")
    assert not isinstance(server, Galera)
    try:
        server.start()
        url = server.url(server.create_database())
        upgrade(url)
        yield Database(server, url)
    finally:
        server.kill()


def prepared(database: Database, folder: Path, setting: str) -> Serving:
    """A service that has a host, and connections that it has used."""
    serving = Serving(database.url, folder / "log", settings=[setting])
    serving.ask("POST", "/resource_providers", {"name": "host", "uuid": HOST})
    body = {"inventories": {"VCPU": {"total": 100}}, "resource_provider_generation": 0}
    assert serving.ask("PUT", f"/resource_providers/{HOST}/inventories", body).status_code == 200
    assert serving.ask("GET", f"/resource_providers/{HOST}/allocations").status_code == 200
    return serving


def claim(serving: Serving, name: str) -> httpx.Response:
    return serving.ask("PUT", f"/allocations/{uuid_of(name)}", allocation({HOST: {"VCPU": 1}}))


def uncertain(answer: httpx.Response) -> bool:
    return answer.status_code == 503 and answer.json()["errors"][0]["code"] == OutcomeUncertain.code


def away(answer: httpx.Response) -> bool:
    """Whether an answer is a 503 that says truly whether the request may be sent again."""
    told = "1" if not uncertain(answer) else None
    return answer.status_code == 503 and answer.headers.get("retry-after") == told


def until_done(serving: Serving, name: str) -> None:
    end = Deadline(SECONDS)
    done = {204}
    while away(answer := claim(serving, name)):
        if uncertain(answer):
            done.add(409)  # it was carried out, so the same claim again is a conflict
        assert not end.passed
        time.sleep(0.05)
    assert answer.status_code in done


def test_each_request_is_refused_with_few_lines_and_later_all_is_well(
    database: Database, tmp_path: Path
) -> None:
    serving = prepared(database, tmp_path, NOT_FOR_LONG)
    try:
        with stopped(database.server):
            # The first ones hang on connections that were there, the later ones connect.
            answers = [
                claim(serving, "one"),
                serving.ask("GET", "/resource_providers"),
                serving.ask("GET", f"/resource_providers/{HOST}/allocations"),
                claim(serving, "two"),
                serving.ask("GET", "/resource_providers"),
            ]
        assert all(away(answer) for answer in answers), [answer.text for answer in answers]
        assert not any(uncertain(answers[number]) for number in (1, 2, 4))
        # An outage has a line when it begins, and one a minute.
        lines = [line for line in serving.said().splitlines() if "no answer" in line or "time" in line]
        assert 1 <= len(lines) <= len(answers)
        until_done(serving, "three")
        assert serving.ask("GET", f"/resource_providers/{HOST}/usages").status_code == 200
    finally:
        serving.end()


def test_readers_that_wait_together_are_all_refused(database: Database, tmp_path: Path) -> None:
    serving = prepared(database, tmp_path, NOT_FOR_LONG)
    paths = ("/resource_providers", f"/resource_providers/{HOST}/allocations", "/usages?project_id=p")
    try:
        with stopped(database.server), ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda path: serving.ask("GET", path), paths * 4))
        assert all(away(answer) for answer in answers), [answer.text for answer in answers]
        until_done(serving, "one")
    finally:
        serving.end()


def test_a_service_that_is_told_to_stop_answers_what_waits_and_ends(
    database: Database, tmp_path: Path
) -> None:
    serving = prepared(database, tmp_path, FOR_HOURS)
    with stopped(database.server), ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(claim, serving, "one")]
        waiting += [pool.submit(serving.ask, "GET", "/resource_providers")]
        time.sleep(1)
        assert not any(each.done() for each in waiting)
        serving.terminate()
        assert all(away(each.result(SECONDS)) for each in waiting)
        assert serving.wait() == 0


def test_a_service_waits_at_its_start_for_a_server_that_hangs(database: Database, tmp_path: Path) -> None:
    with stopped(database.server):
        serving = Serving(database.url, tmp_path / "log", waits=False)
        wait_for(lambda: "the start waits for a database" in serving.said())
    try:
        wait_for(lambda: "roost: Placement API on" in serving.said())
        assert serving.ask("GET", "/resource_providers").status_code == 200
        assert serving.said().count("the start waits for a database") == 1
    finally:
        serving.end()


def test_requests_past_the_limit_are_refused_at_once_while_others_wait(
    database: Database, tmp_path: Path
) -> None:
    """Beyond the limit of writes nothing waits, and all that wait are answered at their deadline."""
    limit, clients = 5, 40
    settings = [FOR_HOURS, f"overload.writes={limit}"]
    serving = Serving(database.url, tmp_path / "log", settings=settings)
    try:
        serving.ask("POST", "/resource_providers", {"name": "host", "uuid": HOST})
        body = {"inventories": {"VCPU": {"total": 100}}, "resource_provider_generation": 0}
        assert serving.ask("PUT", f"/resource_providers/{HOST}/inventories", body).status_code == 200
        with ThreadPoolExecutor(clients) as threads:
            with stopped(database.server):
                claims = [threads.submit(claim, serving, f"w{n}") for n in range(clients)]
                # The others are answered while the database is stopped, although it may take hours.
                end = Deadline(SECONDS)
                while sum(each.done() for each in claims) < clients - limit:
                    assert not end.passed
                    time.sleep(0.05)
                refused = [each for each in claims if each.done()]
                assert len(refused) == clients - limit, [each.result().text for each in refused]
                assert all(away(each.result()) for each in refused)
                assert "writes in flight" in refused[0].result().text
            outcomes = [each.result().status_code for each in claims]
        assert outcomes.count(204) == limit
        until_done(serving, "after")
    finally:
        serving.end()
