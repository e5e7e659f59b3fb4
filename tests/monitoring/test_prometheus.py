"""Debian's Prometheus watches running services: every query of the dashboard and of the alerts is asked."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from monitoring.test_alerts import KNOWN, PAGES, RULES, metrics_in, rules
from roost.bench.loopback import free_port
from support.databases import Servers
from support.ledgers import upgrade
from support.placement_api import allocation, uuid_of
from support.processes import RoostUp
from support.prometheus import Prometheus
from support.servers import Galera
from support.serving import Serving
from support.stopping import stopped
from support.waiting import Deadline

DASHBOARD = Path(__file__).parents[2] / "packaging" / "grafana" / "roost.json"
SECONDS = 60.0
HOST = uuid_of("host")


class Query(NamedTuple):
    """A query of the dashboard, as Grafana sends it."""

    panel: str
    expression: str


def queries() -> list[Query]:
    found = []
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"].replace("$__rate_interval", "20s").replace("$instance", ".*")
            found.append(Query(panel["title"], expression))
    return found


WITHOUT_DATA = {
    "Hosts that each filter removes",
    "Age of the oldest cell",
    "Calls of Nova",
    "Casts of Nova",
    "Cells of Nova that are down",
    "Claims that no host counts yet",
    "Claims that nobody answered for",
    "Comparisons of shadow mode",
    "Ends of Nova's attempts",
    "Freed claims",
    "Hosts without a mapping",
    "Open attempts",
    "Rounds of the audit",
    "Rows read in Nova's databases",
    "Time of Nova's calls, 99 %",
}
"""Panels whose queries may have no data: no host of the system is down or disabled, and it has no Nova."""


def until(what: str, true: Callable[[], object]) -> None:
    end = Deadline(SECONDS)
    while not true():
        assert not end.passed, f"waited in vain until {what}"
        time.sleep(0.25)


def use(ask: Callable[..., httpx.Response], name: str) -> None:
    """Make a host of this name, claim on it and ask for candidates."""
    host = uuid_of(name)
    assert ask("POST", "/resource_providers", {"name": name, "uuid": host}).status_code == 200
    body = {"inventories": {"VCPU": {"total": 100}}, "resource_provider_generation": 0}
    assert ask("PUT", f"/resource_providers/{host}/inventories", body).status_code == 200
    assert (
        ask("PUT", f"/allocations/{uuid_of(f'c{name}')}", allocation({host: {"VCPU": 1}})).status_code == 204
    )
    assert ask("GET", "/allocation_candidates?resources=VCPU:1").status_code == 200


def build(client: httpx.Client) -> None:
    """Ask for an instance that fits, and for one that fits nowhere."""
    for vcpus in (1, 1000):
        answer = client.post("/v1/instances", json={"flavor": {"vcpus": vcpus, "memory_mb": 64}})
        assert answer.status_code == 202, answer.text


@pytest.fixture(scope="module")
def watching(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Prometheus, Serving, RoostUp]]:
    """Prometheus, a service of two workers and a whole system, which it scrapes."""
    servers.needs("prometheus")
    folder = tmp_path_factory.mktemp("watched")
    ports = [free_port(), free_port()]
    url = f"sqlite:///{folder / 'roost.db'}"
    serving = Serving(url, folder / "log", workers=2, arguments=("--metrics-port", str(ports[0])))
    try:
        arguments = ("--hosts", "4", "--cells", "1", "--metrics-port", str(ports[1]))
        with RoostUp(folder / "up", arguments) as system:
            system.wait_until_up()
            targets = {"roost": [f"127.0.0.1:{port}" for port in ports]}
            with Prometheus(folder, targets, [RULES]) as prometheus:
                yield prometheus, serving, system
    finally:
        serving.end()


def test_every_query_of_the_dashboard_is_answered_with_data(
    watching: tuple[Prometheus, Serving, RoostUp],
) -> None:
    prometheus, serving, system = watching
    missing: dict[str, str] = {}

    def all_answered() -> bool:
        """Cause traffic, because rates are of the last seconds; then ask everything."""
        number = len(rounds)
        rounds.append(None)
        use(serving.ask, f"s{number}")
        with system.client() as client:
            build(client)
        missing.clear()
        for query in queries():
            if not prometheus.ask(query.expression) and query.panel not in WITHOUT_DATA:
                missing[query.panel] = query.expression
        return not missing

    rounds: list[None] = []
    try:
        until("all panels have data", all_answered)
    except AssertionError:
        pytest.fail(f"no data: {missing}")


def test_every_alert_is_evaluated_and_none_fires_while_all_is_well(
    watching: tuple[Prometheus, Serving, RoostUp],
) -> None:
    prometheus, *_ = watching
    until("all rules are evaluated", lambda: all(rule["health"] == "ok" for rule in prometheus.rules()))
    found = prometheus.rules()
    assert {rule["name"] for rule in found} == {rule["alert"] for rule in rules()}
    assert not [rule["name"] for rule in found if rule["state"] == "firing"]
    for rule in rules():
        prometheus.ask(rule["expr"])


def test_the_dashboard_is_of_the_catalogue() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    shown = {name for query in queries() for name in metrics_in(query.expression)}
    assert shown == KNOWN
    identifiers = [panel["id"] for panel in dashboard["panels"]]
    assert len(identifiers) == len(set(identifiers))
    assert not re.search(
        r"\$(?!__rate_interval|instance|\{datasource\}|\{dashboard:raw\})\w*", json.dumps(dashboard["panels"])
    )
    places: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        covered = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not covered & places, f"{panel['title']} lies over another panel"
        places |= covered


def test_panels_link_to_pages_of_roosts_own_dashboard() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    variables = {each["name"]: each for each in dashboard["templating"]["list"]}
    assert httpx.URL(variables["dashboard"]["current"]["value"]).port == 8783
    links = [*dashboard["links"], *(link for panel in dashboard["panels"] for link in panel.get("links", ()))]
    # Of the panels about Nova's hosts it has no page.
    assert len(links) > 20
    for link in links:
        assert link["url"].removeprefix("${dashboard:raw}") in PAGES
        assert link["title"] and link["targetBlank"]


def value_of(samples: list[dict[str, Any]]) -> float | None:
    return float(samples[0]["value"][1]) if samples else None


def test_a_database_that_hangs_shows_in_readiness_and_in_metrics_and_then_all_is_well_by_itself(
    servers: Servers, tmp_path: Path
) -> None:
    servers.needs("prometheus")
    server = servers.new("postgresql", "watched")
    assert not isinstance(server, Galera)
    port = free_port()
    try:
        server.start()
        url = server.url(server.create_database())
        upgrade(url)
        settings = ("placement_database.answer_timeout=2",)
        arguments = ("--metrics-port", str(port))
        serving = Serving(url, tmp_path / "log", workers=2, settings=settings, arguments=arguments)
        try:
            with Prometheus(tmp_path, {"roost": [f"127.0.0.1:{port}"]}, [RULES]) as prometheus:
                ready = 'min(roost_health_check_passed{check="database"})'
                errors = 'sum(roost_http_request_duration_seconds_count{status="503"})'
                until("the metrics say ready", lambda: value_of(prometheus.ask(ready)) == 1)
                use(serving.ask, "h")
                with stopped(server):
                    # Nobody asks /readyz: the processes check by themselves.
                    until("the metrics say not ready", lambda: value_of(prometheus.ask(ready)) == 0)
                    assert serving.ask("GET", "/readyz").status_code == 503
                    assert serving.ask("GET", f"/resource_providers/{uuid_of('h')}/usages").status_code == 503
                    until("the metrics have the error", lambda: value_of(prometheus.ask(errors)))
                    alert = 'ALERTS{alertname="RoostNotReady",check="database"}'
                    until("the alert is on its way", lambda: prometheus.ask(alert))
                until("the metrics say ready again", lambda: value_of(prometheus.ask(ready)) == 1)
                until("it is ready again", lambda: serving.ask("GET", "/readyz").status_code == 200)
                assert prometheus.ask("up") and serving.ask("GET", "/resource_providers").status_code == 200
        finally:
            serving.end()
    finally:
        server.kill()
