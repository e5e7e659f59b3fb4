"""Cells for tests, with hosts and instances."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from roost.model.instance import ASSIGNED, BuildResult, Instance
from roost.model.spec import Selection
from roost.storage import Database
from support.driven_cell import DrivenCell

NOW = 1000.0


@asynccontextmanager
async def opened_cell(directory: Path, name: str = "cell1") -> AsyncIterator[DrivenCell]:
    """Open the cell of this name in a directory. Its clock stands at `NOW`."""
    database = Database(f"sqlite:///{directory / name}.db")
    try:
        yield DrivenCell(name, database, lambda: NOW)
    finally:
        await database.close()


def selection(host: str, cell: str = "cell1", weight: float = 0.5) -> Selection:
    """Return a selection of a host, with one VCPU of its node."""
    return Selection(
        host, f"node-{host}", cell, {f"node-{host}": {"VCPU": 1}}, {"": [f"node-{host}"]}, weight
    )


def instance(uuid: str = "i", host: str | None = "a", alternates: str = "", **others: object) -> Instance:
    """Return an instance that is assigned to its host. ``alternates`` has a letter for each alternate."""
    facts: dict[str, object] = {
        "request_id": "req",
        "run": "run",
        "project_id": "project",
        "user_id": "user",
        "flavor": "small",
        "state": ASSIGNED,
        "node": None if host is None else f"node-{host}",
        "attempt": 1,
        "alternates": tuple(selection(name) for name in alternates),
    }
    return Instance(uuid=uuid, host=host, **{**facts, **others})  # type: ignore[arg-type]


def failed(uuid: str = "i", host: str = "a", attempt: int = 1, reason: str = "no IP") -> BuildResult:
    return BuildResult(uuid, host, attempt, reason)


def built(uuid: str = "i", host: str = "a", attempt: int = 1) -> BuildResult:
    return BuildResult(uuid, host, attempt)
