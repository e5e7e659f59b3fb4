"""Benchmark of contention: many clients claim on few, nearly full hosts; capacities are checked."""

from collections.abc import Sequence
from typing import Any, Final

import click

from roost.bench.claims import RESOURCES, Claims
from roost.bench.fleets import FleetPlan, nearly_full
from roost.bench.load_generator import CONFLICT
from roost.bench.measurement import ComparedSetting, announce, figures, measured, running_services
from roost.bench.options import count_option, reported
from roost.bench.report import BenchReport, BenchTable, Column
from roost.bench.services import BenchService
from roost.bench.store import Store
from roost.fleet.fits import has_room
from roost.model.inventory import Inventory

CONFLICT_RETRIES: Final = 10
"""Retries of a request after conflicts. Nova retries fewer times."""
REFUSED: Final = "409 placement.undefined_code"
"""The outcome of a claim for which the host has no capacity."""

TABLE: Final = BenchTable(
    "contention",
    "Claims on hosts that fill up",
    (
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
    ),
)
"""Each row is one service.

``answers``: responses, those to retries included. ``overfull``: hosts whose usage exceeds a capacity.
``unaccounted``: the difference between successful claims and the usage that the hosts gained; None if a
request got no response.
"""


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
    wrong = [
        f"{row['service']}: {row['overfull']} hosts hold more than they have"
        for row in rows
        if row["overfull"]
    ]
    wrong += [
        f"{row['service']}: {row['unaccounted']} claims unaccounted for" for row in rows if row["unaccounted"]
    ]
    return TABLE.report(rows, setting.settings(store, clients=clients, hosts=plan.hosts), wrong=wrong)


def contend(
    setting: ComparedSetting, service: BenchService, roots: Sequence[str], clients: int, claims: int
) -> dict[str, Any]:
    """Claim on the root providers ``roots`` of one service, and check their usage afterwards."""
    before = sum(_in_use(service, root)[0] for root in roots)
    requests = [*Claims(roots, seed=7).puts(claims).values()]
    load = measured(
        setting.load(
            service,
            requests,
            clients,
            cyclic=False,
            min_requests=clients,
            conflict_retries=CONFLICT_RETRIES,
        )
    )
    total = figures(load)
    use = [_in_use(service, root) for root in roots]
    claimed = load.succeeded
    conflicts = load.outcomes[CONFLICT]
    unanswered = load.outcomes["overdue"] + load.outcomes["cut off"]
    gained = (sum(used for used, _ in use) - before) // RESOURCES["VCPU"]
    return {
        "service": service.name,
        "answers": total.requests,
        "claimed": claimed,
        "refused": load.outcomes[REFUSED],
        "conflicts": conflicts,
        "conflicts_per_success": conflicts / claimed if claimed else None,
        "other": {
            name: count
            for name, count in load.outcomes.items()
            if not name.startswith("2") and name not in (REFUSED, CONFLICT)
        },
        "per_second": total.per_second,
        "p50_ms": total.p50_ms,
        "p99_ms": total.p99_ms,
        "overfull": sum(overfull for _, overfull in use),
        "unaccounted": None if unanswered else abs(gained - claimed),
    }


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


@click.command(epilog="Example: roost bench contention --database postgresql --duration 30 --peer")
@count_option("--hosts", 20, "Nearly full hosts.")
@count_option("--clients", 64, "Connections.")
@count_option("--claims", 2_000, "Claims that are sent at most.")
@reported(peer=True, rounds=2, seconds=3.0)
def contention(setting: ComparedSetting, hosts: int, clients: int, claims: int) -> BenchReport:
    """Claim from many clients on few hosts until they are full, and check that no capacity is exceeded.

    Each service has one round, which ends with the claims or after --duration. Exit status: 0 all checks
    passed, 1 usage exceeds a host's capacity or differs from the claims, 2 could not run.
    """
    with setting.store() as store:
        return measure(setting, store, nearly_full(hosts), clients, claims)
