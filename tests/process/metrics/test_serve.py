"""`roost serve` and `roost up` with --metrics-port, as processes."""

import gzip
import os
import signal
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from roost.process.metrics.catalogue import CATALOGUE
from support.processes import RoostUp, free_port, run_roost
from support.serving import ENVIRONMENT, Serving
from support.waiting import Deadline

SECONDS = 30.0
"""Seconds within which a number must appear that is published once a second."""

Samples = dict[tuple[str, ...], float]


def scrape(port: int) -> Samples:
    """All samples, by name and label values in the order of the labels' names."""
    text = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).raise_for_status().text
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def wait_for(port: int, condition: Callable[[Samples], bool]) -> Samples:
    """Scrape until a condition holds."""
    until = Deadline(SECONDS)
    while not condition(found := scrape(port)):
        assert not until.passed, found
        time.sleep(0.1)
    return found


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("serve")
    environment = {**ENVIRONMENT, "TMPDIR": str(folder)}
    url = f"sqlite:///{folder / 'roost.db'}"
    arguments = ("--metrics-port", str(port))
    server = Serving(url, folder / "log", workers=2, arguments=arguments, environment=environment)
    assert list(folder.glob("roost-metrics-*"))
    yield server
    server.end()
    assert not list(folder.glob("roost-metrics-*"))


def claims(serving: Serving, number: int) -> None:
    """Make a host, and claims of different consumers on it."""
    host = str(uuid.uuid4())
    assert serving.ask("POST", "/resource_providers", {"name": host, "uuid": host}).status_code == 200
    inventories = {"inventories": {"VCPU": {"total": 1000}}, "resource_provider_generation": 0}
    answer = serving.ask("PUT", f"/resource_providers/{host}/inventories", inventories)
    assert answer.status_code == 200, answer.text
    for _ in range(number):
        body = {
            "allocations": {host: {"resources": {"VCPU": 1}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        assert serving.ask("PUT", f"/allocations/{uuid.uuid4()}", body).status_code == 204


def test_the_counts_of_all_workers_add_up(serving: Serving, port: int) -> None:
    duration = "roost_http_request_duration_seconds_count"
    put = (duration, "PUT /allocations/{consumer}", "204")
    commits = ("roost_ledger_commits_total",)
    candidates = (duration, "GET /allocation_candidates", "200")
    before = wait_for(port, lambda found: found[commits] >= 1)
    claims(serving, 20)
    for _ in range(10):
        assert serving.ask("GET", "/allocation_candidates?resources=VCPU:1").status_code == 200
    assert serving.ask("GET", "/nothing").status_code == 404
    wanted = {put: 20, candidates: 10, (duration, "unknown", "404"): 1}
    found = wait_for(port, lambda found: all(found.get(name, 0) >= n for name, n in wanted.items()))
    assert {name: found[name] for name in wanted} == wanted
    assert found[commits] - before[commits] == 22
    assert found["roost_allocation_candidates_returned_count",] == 10
    assert found["roost_allocation_candidates_returned_sum",] == 10
    # Each request came on a connection of its own, so that both workers count.
    processes = {name[1] for name in found if name[0] == "roost_process_start_time_seconds"}
    assert processes == {"1", "2"}
    checks = {name[1]: value for name, value in found.items() if name[0] == "roost_ledger_head_checks_total"}
    assert checks["skipped"] + checks["unchanged"] + checks["changed"] >= 22
    assert found["roost_ledger_commit_stage_duration_seconds_count", "append"] >= 22
    assert found["roost_http_requests_in_flight",] == 0
    assert found["roost_ledger_waiting_commands",] == 0
    for number in ("1", "2"):
        assert found["roost_process_resident_memory_bytes", number] > 2**24
        assert found["roost_process_cpu_seconds_total", number] > 0
        assert found["roost_process_open_fds", number] > 3


def test_a_killed_worker_leaves_its_counts_and_its_number(serving: Serving, port: int) -> None:
    duration = ("roost_http_request_duration_seconds_count", "GET /traits", "200")
    for _ in range(20):
        assert serving.ask("GET", "/traits").status_code == 200
    before = wait_for(port, lambda found: found.get(duration) == 20)
    starts = {name: value for name, value in before.items() if name[0] == "roost_process_start_time_seconds"}
    killed = min(serving.workers)
    os.kill(killed, signal.SIGKILL)
    found = wait_for(
        port,
        lambda found: starts.keys() <= found.keys() and any(found[name] > starts[name] for name in starts),
    )
    assert {name for name in found if name[0] == "roost_process_start_time_seconds"} == starts.keys()
    assert sum(found[name] == started for name, started in starts.items()) == 1
    assert found[duration] == 20
    assert killed not in serving.workers


def test_only_metrics_and_labels_of_the_catalogue_are_served(serving: Serving, port: int) -> None:
    text = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    rows = {metric.name.removesuffix("_total"): metric for metric in CATALOGUE}
    for family in parse(text):
        metric = rows[family.name]
        assert family.type == metric.kind
        assert family.documentation == metric.help
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.label_names)
            for label in metric.described_labels:
                assert label.values is None or sample.labels[label.name] in (*label.values, "other")


def test_the_format_is_negotiated(serving: Serving, port: int) -> None:
    url = f"http://127.0.0.1:{port}/metrics"
    accept = {"accept": "application/openmetrics-text; version=1.0.0", "accept-encoding": "gzip"}
    with httpx.stream("GET", url, headers=accept, trust_env=False) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.headers["content-encoding"] == "gzip"
    names = {family.name for family in parse_openmetrics(gzip.decompress(raw).decode())}
    assert "roost_http_request_duration_seconds" in names
    assert httpx.get(f"http://127.0.0.1:{port}/", trust_env=False).status_code == 404
    assert httpx.post(url, trust_env=False).status_code == 405


def test_metrics_are_not_on_the_address_of_the_api(serving: Serving, port: int) -> None:
    assert serving.ask("GET", "/metrics").status_code == 404


def test_an_address_that_is_taken_ends_the_command_before_it_starts(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        taken = str(other.getsockname()[1])
        for command in (
            ("serve", "--database", f"sqlite:///{tmp_path}/roost.db", "--set", "api.auth_strategy=noauth2"),
            ("up", "--data-dir", str(tmp_path / "data")),
        ):
            done = run_roost(*command, "--port", str(free_port()), "--metrics-port", taken)
            assert done.returncode == 2, done.stderr
            assert f"cannot serve metrics on 127.0.0.1 port {taken}: Address already in use" in done.stderr
            assert done.stderr.count("\n") == 1
    port = str(free_port())
    database = f"sqlite:///{tmp_path}/roost.db"
    done = run_roost(
        *("serve", "--database", database, "--set", "api.auth_strategy=noauth2", "--port", port),
        *("--metrics-host", "192.0.2.1", "--metrics-port", port),
    )
    assert done.returncode == 2
    assert "cannot serve metrics on 192.0.2.1" in done.stderr


def test_without_the_option_nothing_imports_prometheus_client(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "PYTHONPROFILEIMPORTTIME": "1"}
    server = Serving(f"sqlite:///{tmp_path}/roost.db", tmp_path / "log", environment=environment, fresh=True)
    server.end()
    assert "roost.placement.v1.app" in server.said()
    assert "prometheus_client" not in server.said()


def test_one_process_alone(tmp_path: Path) -> None:
    port = free_port()
    arguments = ("--hosts", "6", "--cells", "2", "--metrics-port", str(port))
    with RoostUp(tmp_path / "data", arguments) as server:
        server.wait_until_up()
        with server.client() as http:
            assert http.get("/resource_providers").status_code == 200
        found = wait_for(
            port,
            lambda found: (
                ("roost_http_request_duration_seconds_count", "GET /resource_providers", "200") in found
            ),
        )
        assert found["roost_process_start_time_seconds", "1"] > 0
        assert sum(name == "roost_process_start_time_seconds" for name, *_ in found) == 1
        assert found["roost_ledger_commits_total",] > 0
        assert server.stop()[0] == 0


def test_a_system_counts_decisions_builds_and_records(tmp_path: Path) -> None:
    port = free_port()
    arguments = ("--hosts", "6", "--cells", "2", "--host-vcpus", "8", "--metrics-port", str(port))
    with RoostUp(tmp_path / "data", arguments) as server:
        server.wait_until_up()
        with server.client() as http:
            for vcpus, count in ((1, 3), (100, 1)):
                flavor = {"name": "small", "vcpus": vcpus, "memory_mb": 64}
                wanted = {"flavor": flavor, "count": count}
                assert http.post("/v1/instances", json=wanted).status_code == 202
        built = ("roost_compute_builds_total", "built")
        refused = ("roost_scheduler_decisions_total", "refused")
        found = wait_for(port, lambda found: found[built] == 3 and found[refused] == 1)
        assert found["roost_scheduler_decisions_total", "placed"] == 1
        assert found["roost_scheduler_refusals_total", "placement"] == 1
        assert found["roost_scheduler_claim_attempts_total", "claimed"] == 3
        assert found["roost_scheduler_offered_hosts_total",] == 6
        assert found["roost_scheduler_decision_duration_seconds_count",] == 2
        assert found["roost_compute_heartbeats_total",] >= 6
        # Two runs, three attempts that begin and end, and the reasons of the refusal.
        found = wait_for(port, lambda found: found["roost_records_total", "written"] == 9)
        assert found["roost_scheduler_explanations_total", "explained"] == 1
        assert found["roost_records_waiting",] == 0
        found = wait_for(port, lambda found: ("roost_health_check_passed", "api") in found)
        assert {name[1] for name in found if name[0] == "roost_health_check_passed"} == {
            "api",
            "database",
            "ledger",
            "history",
        }
        assert found["roost_health_check_passed", "database"] == 1
        assert found["roost_ledger_lag_commits",] == 0
