"""Checks of the parts of a cloud: each sends requests to a service, and returns findings with a severity."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import msgspec

from roost.cli.connection import ServiceConnection
from roost.cli.output import utc
from roost.cli.profiles import Service
from roost.cli.service_client import RequestRefused, ServiceClient, ServiceFailed, Unreached
from roost.conductor.findings import (
    LEVELS,
    StatusFinding,
    finding_of_maintenance,
    findings_of_audit,
    findings_of_cell,
    findings_of_feature,
    findings_of_process,
    findings_of_refusals,
    hosts_disabled,
    hosts_down,
)
from roost.model.errors import OperatorError


class StatusReport(msgspec.Struct, frozen=True):
    """All findings, worst first.

    ``counts``: number of hosts, instances and so on, by kind. ``unknown``: parts that could not be checked.
    """

    findings: tuple[StatusFinding, ...]
    counts: dict[str, int]
    unknown: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, findings: list[StatusFinding], counts: dict[str, int], unknown: tuple[str, ...] = ()
    ) -> "StatusReport":
        """Return a report with the findings sorted by level; those of one level keep their order."""
        return cls(tuple(sorted(findings, key=lambda each: LEVELS.index(each.level))), counts, unknown)

    @property
    def wrong(self) -> bool:
        """Return whether something fails, or an operator has to look."""
        return any(each.level != "note" for each in self.findings)

    @property
    def summary(self) -> str:
        """Return the counts in one line."""
        counts = ", ".join(f"{number:,} {name}" for name, number in self.counts.items())
        verdict = "something is wrong" if self.wrong else "nothing is wrong"
        if self.unknown and not self.wrong:
            verdict = f"nothing is known to be wrong, but not all could be asked: {', '.join(self.unknown)}"
            return f"{verdict}; {counts}" if counts else verdict
        return f"{verdict}: {counts}" if counts else verdict


MOST_RUNS = 1000
"""Most runs whose refusals are counted: the newest ones. If there are more, a note says so."""

SECONDS = 10.0
"""Seconds that a service has for a response."""

Counts = dict[str, int]
"""Numbers of the parts of a cloud, by kind."""


def checked(connections: Mapping[Service, ServiceConnection], now: float, minutes: int) -> StatusReport:
    """Check all parts of a cloud. ``now``: seconds since the epoch. ``minutes``: age of counted refusals."""
    clients = {service: ServiceClient(each, SECONDS) for service, each in connections.items()}
    findings: list[StatusFinding] = []
    counts: Counts = {}
    away: set[Service] = set()
    for service, client in clients.items():
        findings += _readiness(service, client, away)
    conductor = clients["conductor"]
    parts: tuple[tuple[str, Service, Callable[[], Iterable[StatusFinding]]], ...] = (
        ("services", "conductor", partial(_services, conductor, counts)),
        ("cells", "conductor", partial(_cells, conductor, counts)),
        ("hosts", "conductor", partial(_hosts, conductor, counts)),
        ("audit", "conductor", partial(_audit, conductor, counts)),
        ("maintenances", "conductor", partial(_maintenances, conductor)),
        (
            "refusals",
            "scheduler",
            partial(_refusals, clients["scheduler"], counts, now - 60 * minutes, minutes),
        ),
    )
    unknown = []
    for about, service, check in parts:
        try:
            # Further checks would each wait for the service until its response is overdue.
            if service in away:
                raise OperatorError(f"the {service} does not answer")
            findings += check()
        except OperatorError as error:
            # It is only a note: the readiness of the service tells whether it fails.
            findings.append(StatusFinding("note", about, f"not known: {error}"))
            unknown.append(about)
    return StatusReport.of(_once(findings), counts, tuple(unknown))


def _once(findings: Iterable[StatusFinding]) -> list[StatusFinding]:
    """Return the findings without duplicates: three services in one process report the same."""
    return list(dict.fromkeys(findings))


def _readiness(service: Service, client: ServiceClient, away: set[Service]) -> Iterator[StatusFinding]:
    """Yield findings of the readiness checks of a service's process: databases, lag and others.

    A service that does not answer is added to ``away``.
    """
    url = client.connection.place
    try:
        report = client.ask("GET", "/readyz")
    except ServiceFailed as error:
        report = error.answer
    except RequestRefused:
        report = None
    except OperatorError as error:
        if isinstance(error, Unreached):
            away.add(service)
        if service != "conductor" and client.connection.by_default:
            yield StatusFinding("note", service, f"none is named, and none answers at {url}")
        else:
            yield StatusFinding("fails", service, str(error))
        return
    if not isinstance(report, dict) or "checks" not in report:
        yield StatusFinding(
            "fails", service, f"another program answers at {url}: it has no report of readiness"
        )
        return
    for check in report["checks"]:
        if not check["passed"]:
            yield StatusFinding("fails", url, f"{check['name']}: {check.get('reason') or 'the check fails'}")


def _services(conductor: ServiceClient, counts: Counts) -> Iterator[StatusFinding]:
    answer = conductor.ask("GET", "/v1/services")
    counts["processes"] = len(answer["services"])
    for each in answer["services"]:
        yield from findings_of_process(
            each["name"], each["kind"], each["cell"], each["state"], utc(each["since"])
        )
    for each in answer["features"]:
        yield from findings_of_feature(each["name"], each["held_back_by"])


def _cells(conductor: ServiceClient, counts: Counts) -> Iterator[StatusFinding]:
    cells = conductor.ask("GET", "/v1/cells")["cells"]
    counts["cells"] = len(cells)
    for each in cells:
        hosts, enabled, reason = each["hosts"], each["enabled"], each["reason"]
        yield from findings_of_cell(each["name"], each["state"], hosts, enabled, reason)


def _hosts(conductor: ServiceClient, counts: Counts) -> Iterator[StatusFinding]:
    states: Counter[str] = Counter()
    down: dict[str, list[str]] = {}
    disabled: list[str] = []
    for page in conductor.pages("/v1/hosts", "hosts", {}):
        for each in page["hosts"]:
            states[each["state"]] += 1
            if each["state"] == "down" and each["added_at"] is not None:
                down.setdefault(each["cell"], []).append(each["host"])
            if each["enabled"] is False:
                disabled.append(each["host"])
            if each["held"]:
                yield StatusFinding(
                    "look", f"host {each['host']}", f"its agent carries out no orders: {each['held']}"
                )
            if each["refused"]:
                yield StatusFinding(
                    "look", f"host {each['host']}", f"not all that it reports is taken: {each['refused']}"
                )
    counts["hosts"] = states.total()
    counts["hosts up"] = states["up"]
    for cell, names in sorted(down.items()):
        yield hosts_down(cell, names)
    if disabled:
        yield hosts_disabled(disabled)


def _audit(conductor: ServiceClient, counts: Counts) -> Iterator[StatusFinding]:
    audit = conductor.ask("GET", "/v1/audit", query={"limit": 1})
    yield from findings_of_audit(audit["asks"], audit["found"], audit["round"])


def _maintenances(conductor: ServiceClient) -> Iterator[StatusFinding]:
    for page in conductor.pages("/v1/maintenances", "maintenances", {"under_way": True}):
        for each in page["maintenances"]:
            yield finding_of_maintenance(each["uuid"], each["state"], each["left"], each["reason"])


def _refusals(
    scheduler: ServiceClient, counts: Counts, since: float, minutes: int
) -> Iterator[StatusFinding]:
    """Yield findings of refusals among the last runs."""
    runs = []
    more = False
    for page in scheduler.pages("/v1/scheduler/records", "records", {"since": since, "limit": MOST_RUNS}):
        runs += [each["run"] for each in page["records"]]
        more = page["next"] is not None
    refused = Counter(str(each["refusal"]) for each in runs if each.get("refusal") is not None)
    counts[f"newest requests in {minutes} min" if more else f"requests in {minutes} min"] = len(runs)
    counts["refused"] = refused.total()
    yield from findings_of_refusals(refused, len(runs), minutes, more=more)
