"""The dashboard as a process beside the service that claims, with the racks of its hosts."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from roost.bench.fleets import SEED, FleetPlan, uuids
from roost.bench.services import BenchService
from roost.model.aggregate import AVAILABILITY_ZONE, Aggregate
from roost.state.api_database.aggregates.store import AggregateStore
from roost.storage import Database

HOSTS_OF_A_RACK: Final = 40
ZONES: Final = 5

_AT_ONCE: Final = 100
"""Aggregates that are written in one transaction."""


class DashboardProcess(BenchService):
    """``roost dashboard`` on a database of placement: its root providers are the hosts.

    ``racks``: the file of an API database with the aggregates of racks and zones.
    """

    name = "dashboard"
    _READY = "/readyz"

    def __init__(self, log: Path, database: str, racks: Path, folder: Path) -> None:
        super().__init__(log)
        self._arguments = ("--database", database)
        self._settings = {
            "scheduler.hosts_from_placement": "true",
            "api_database.connection": f"sqlite:///{racks}",
            "records.connection": f"sqlite:///{folder / 'dashboard-records.sqlite'}",
        }

    def _command(self) -> Sequence[str]:
        program = str(Path(sys.executable).with_name("roost"))
        settings = [part for name, value in self._settings.items() for part in ("--set", f"{name}={value}")]
        return [program, "dashboard", "--port", str(self.port), *self._arguments, *settings]


def racks_of(plan: FleetPlan, folder: Path) -> Path:
    """Return the API database with racks of `HOSTS_OF_A_RACK` hosts in zones, made if it is missing."""
    path = folder / f"racks_{plan.key}.db"
    if not path.exists():
        making = path.with_suffix(".part")
        making.unlink(missing_ok=True)
        asyncio.run(_write_racks(making, plan.roots()))
        making.rename(path)
    return path


async def _write_racks(path: Path, roots: Sequence[str]) -> None:
    database = Database(f"sqlite:///{path}")
    try:
        store = AggregateStore(database)
        racks = [roots[first : first + HOSTS_OF_A_RACK] for first in range(0, len(roots), HOSTS_OF_A_RACK)]
        names = uuids(np.random.default_rng(SEED + 2), len(racks))
        made = [
            Aggregate(
                uuid=uuid,
                name=f"rack-{number:04}",
                metadata={"rack": f"r{number:04}", AVAILABILITY_ZONE: f"zone-{number * ZONES // len(racks)}"},
                members=frozenset(members),
            )
            for number, (uuid, members) in enumerate(zip(names, racks, strict=True))
        ]
        for first in range(0, len(made), _AT_ONCE):
            await store.create(made[first : first + _AT_ONCE], judge=lambda _: None)
    finally:
        await database.close()
