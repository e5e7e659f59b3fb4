"""Many clients, few hosts, little room: how often they are in each other's way, and is nothing sold twice?"""

from collections.abc import Sequence
from typing import Final

import msgspec

from roost.bench.claims import RESOURCES, Claims
from roost.bench.client import CONFLICT, Plan
from roost.bench.contest import Setting, services, tell
from roost.bench.fleets import FleetPlan
from roost.bench.load import Load, figures, request, send
from roost.bench.report import Column, Report, report
from roost.bench.services import Service
from roost.bench.store import Store
from roost.fleet.fits import has_room
from roost.model.inventory import Inventory

REPEATS: Final = 10
"""How often a client tries again after a conflict, as Nova does (it gives up sooner)."""
REFUSED: Final = "409 placement.undefined_code"
"""An answer that there is no room."""

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


class Row(msgspec.Struct, frozen=True):
    """One service. ``answers``: repetitions included. ``unaccounted``: claims answered with success that are
    not in use afterwards, or the other way round; None if some went without an answer."""

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


def measure(setting: Setting, store: Store, plan: FleetPlan, clients: int, claims: int) -> Report:
    """Claim on the hosts of ``plan`` until all claims were answered or time is up. Raises `BenchError`."""
    roots = plan.roots()
    rows = []
    with services(setting, store, plan) as entered:
        for service in entered:
            tell(f"contention: {service.name}")
            rows.append(_contend(setting, service, roots, clients, claims))
    wrong = [f"{row.service}: {row.overfull} hosts hold more than they have" for row in rows if row.overfull]
    wrong += [f"{row.service}: {row.unaccounted} claims unaccounted for" for row in rows if row.unaccounted]
    settings = {**setting.settings(), "database": store.kind, "clients": clients, "hosts": plan.hosts}
    return report("contention", "Claims on hosts that fill up", COLUMNS, rows, settings, wrong=wrong)


def _contend(setting: Setting, service: Service, roots: Sequence[str], clients: int, claims: int) -> Row:
    before = sum(_in_use(service, root)[0] for root in roots)
    bodies = Claims(roots, seed=7).bodies(claims)
    plan = Plan(
        port=service.port,
        clients=clients,
        requests=[request("PUT", f"/allocations/{consumer}", body) for consumer, body in bodies],
        seconds=setting.seconds,
        warm=[request("GET", "/")],
        over_again=False,
        least=clients,
        timeout=setting.timeout,
        repeats=REPEATS,
    )
    load = Load()
    load.add(send(plan))
    shown = figures(load)
    use = [_in_use(service, root) for root in roots]
    claimed = load.succeeded
    conflicts = load.outcomes[CONFLICT]
    silent = load.outcomes["overdue"] + load.outcomes["cut off"]
    more = (sum(used for used, _ in use) - before) // RESOURCES["VCPU"]
    return Row(
        service=service.name,
        answers=shown.requests,
        claimed=claimed,
        refused=load.outcomes[REFUSED],
        conflicts=conflicts,
        conflicts_per_success=conflicts / claimed if claimed else None,
        other={
            name: count
            for name, count in load.outcomes.items()
            if not name.startswith("2") and name not in (REFUSED, CONFLICT)
        },
        per_second=shown.per_second,
        p50_ms=shown.p50_ms,
        p99_ms=shown.p99_ms,
        overfull=sum(overfull for _, overfull in use),
        unaccounted=None if silent else abs(more - claimed),
    )


def _in_use(service: Service, provider: str) -> tuple[int, bool]:
    """The VCPU in use of a provider, and whether it holds more of anything than it has."""
    used = service.ask("GET", f"/resource_providers/{provider}/usages").json()["usages"]
    stock = service.ask("GET", f"/resource_providers/{provider}/inventories").json()["inventories"]
    overfull = any(
        not has_room(
            used[name],
            Inventory(each["total"], each["reserved"], allocation_ratio=each["allocation_ratio"]).capacity,
        )
        for name, each in stock.items()
    )
    return used["VCPU"], overfull
