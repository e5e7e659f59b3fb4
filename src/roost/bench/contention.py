"""Benchmark of contention: many clients claim on few, nearly full hosts; capacities are checked."""

from collections.abc import Sequence
from typing import Final

import msgspec

from roost.bench.claims import RESOURCES, Claims
from roost.bench.comparison import ComparedSetting, running_services
from roost.bench.fleets import FleetPlan
from roost.bench.load_generator import CONFLICT, LoadPlan
from roost.bench.measurement import Measurement, figures, http_request, run_load
from roost.bench.progress import announce
from roost.bench.report import BenchReport, Column, report
from roost.bench.services import BenchService
from roost.bench.store import Store
from roost.fleet.fits import has_room
from roost.model.inventory import Inventory

CONFLICT_RETRIES: Final = 10
"""Retries of a request after conflicts. Nova retries fewer times."""
REFUSED: Final = "409 placement.undefined_code"
"""The outcome of a claim for which the host has no capacity."""

COLUMNS: Final = (
    Column("service", "service"),
    Column("answers", "answers", ","),
    Column("claimed", "claimed", ","),
    Column("no room", "refused", ","),
    Column("conflicts", "conflicts", ","),
    Column("conflicts per success", "conflicts_per_success", ".3f"),
    Column("other", "other"),
    Column("claims/s", "per_second", ",.0f"),
    Column("p50 ms", "p50_ms", ",.1f"),
    Column("p99 ms", "p99_ms", ",.1f"),
    Column("hosts over capacity", "overfull"),
    Column("claims unaccounted for", "unaccounted"),
)


class ContentionRow(msgspec.Struct, frozen=True):
    """The result of one service.

    ``answers``: responses, those to retries included. ``overfull``: hosts whose usage exceeds a capacity.
    ``unaccounted``: the difference between successful claims and the usage that the hosts gained; None if a
    request got no response.
    """

    service: str
    answers: int
    claimed: int
    refused: int
    conflicts: int
    conflicts_per_success: float | None
    other: dict[str, int]
    per_second: float
    p50_ms: float
    p99_ms: float
    overfull: int
    unaccounted: int | None


def measure(
    setting: ComparedSetting, store: Store, plan: FleetPlan, clients: int, claims: int
) -> BenchReport:
    """Claim on the hosts of ``plan`` on each service, until all claims are answered or the time is over.

    Raises:
        BenchError: A service does not start or does not answer.
    """
    roots = plan.roots()
    rows = []
    with running_services(setting, store, plan) as entered:
        for service in entered:
            announce(f"contention: {service.name}")
            rows.append(contend(setting, service, roots, clients, claims))
    wrong = [f"{row.service}: {row.overfull} hosts hold more than they have" for row in rows if row.overfull]
    wrong += [f"{row.service}: {row.unaccounted} claims unaccounted for" for row in rows if row.unaccounted]
    settings = {**setting.settings(), "database": store.kind, "clients": clients, "hosts": plan.hosts}
    return report("contention", "Claims on hosts that fill up", COLUMNS, rows, settings, wrong=wrong)


def contend(
    setting: ComparedSetting, service: BenchService, roots: Sequence[str], clients: int, claims: int
) -> ContentionRow:
    """Claim on the root providers ``roots`` of one service, and check their usage afterwards."""
    before = sum(_in_use(service, root)[0] for root in roots)
    bodies = Claims(roots, seed=7).bodies(claims)
    plan = LoadPlan(
        port=service.port,
        clients=clients,
        requests=[http_request("PUT", f"/allocations/{consumer}", body) for consumer, body in bodies],
        seconds=setting.seconds,
        warm_up=[http_request("GET", "/")],
        cyclic=False,
        min_requests=clients,
        timeout=setting.timeout,
        conflict_retries=CONFLICT_RETRIES,
    )
    load = Measurement()
    load.add(run_load(plan))
    total = figures(load)
    use = [_in_use(service, root) for root in roots]
    claimed = load.succeeded
    conflicts = load.outcomes[CONFLICT]
    unanswered = load.outcomes["overdue"] + load.outcomes["cut off"]
    gained = (sum(used for used, _ in use) - before) // RESOURCES["VCPU"]
    return ContentionRow(
        service=service.name,
        answers=total.requests,
        claimed=claimed,
        refused=load.outcomes[REFUSED],
        conflicts=conflicts,
        conflicts_per_success=conflicts / claimed if claimed else None,
        other={
            name: count
            for name, count in load.outcomes.items()
            if not name.startswith("2") and name not in (REFUSED, CONFLICT)
        },
        per_second=total.per_second,
        p50_ms=total.p50_ms,
        p99_ms=total.p99_ms,
        overfull=sum(overfull for _, overfull in use),
        unaccounted=None if unanswered else abs(gained - claimed),
    )


def _in_use(service: BenchService, provider: str) -> tuple[int, bool]:
    """Return the VCPUs in use at a provider, and whether any usage exceeds its capacity."""
    used = service.request("GET", f"/resource_providers/{provider}/usages").json()["usages"]
    inventories = service.request("GET", f"/resource_providers/{provider}/inventories").json()["inventories"]
    overfull = any(
        not has_room(
            used[name],
            Inventory(each["total"], each["reserved"], allocation_ratio=each["allocation_ratio"]).capacity,
        )
        for name, each in inventories.items()
    )
    return used["VCPU"], overfull
