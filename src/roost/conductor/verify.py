"""The verification that the claims in placement are those of the instances in the cells."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.conductor.comparison import ApiState, CellState, judge
from roost.ledger import Held
from roost.ledger.findings import Finding
from roost.ledger.holdings import held_by_all
from roost.ledger.tables import provider_traits, resource_providers, traits
from roost.model.vocabulary import SHARING_TRAIT
from roost.process.option_source import Source
from roost.state.api_database.cell_mappings import mapped_cells, url_of
from roost.state.api_database.request_reads import waiting_requests
from roost.state.api_database.tables import SCHEMA, instance_mappings
from roost.state.cell_database import Cell
from roost.state.cell_database.moves import read_all_moves
from roost.state.cell_database.tables import SCHEMA as CELL_SCHEMA
from roost.storage import COMMAND_ANSWER_SECONDS, Database, DatabaseUrl, StorageError

SETTLE_SECONDS = 1.0
"""Seconds between two comparisons. A difference that the second one lacks was work in progress: the databases
are not read at one moment."""


class Unread(msgspec.Struct, frozen=True):
    """A cell that could not be checked, and why."""

    cell: str
    reason: str


async def _settle() -> None:
    await asyncio.sleep(SETTLE_SECONDS)


async def verify_instances(
    ledger: Database,
    settle: Callable[[], Awaitable[None]] = _settle,
    *,
    api: Database | None = None,
    source: Source | None = None,
) -> tuple[list[Finding], list[Unread]]:
    """Compare placement with all cells that the API database names; nothing is written.

    ``api``: the API database; None: it is that of the ledger. ``source``: of the configuration with the
    sections of cells.

    If the first comparison finds differences, a second one follows after ``settle``, and only differences of
    both count: the others were work in progress. A database without the conductor's tables or without cells
    has none.

    Raises:
        StorageError: the API database cannot be read.
    """
    api = api or ledger
    if SCHEMA.known_revision(api) is None:
        return [], []
    findings, unread = await _compare(ledger, api, source)
    if findings:
        await settle()
        again, unread = await _compare(ledger, api, source)
        before = {(finding.kind, finding.subject) for finding in findings}
        findings = [finding for finding in again if (finding.kind, finding.subject) in before]
    return findings, unread


async def _compare(
    ledger: Database, database: Database, source: Source | None
) -> tuple[list[Finding], list[Unread]]:
    claimed = await ledger.read(_read_ledger)
    api = await database.read(partial(_read_api, claimed))
    cells: dict[str, CellState] = {}
    unread: list[Unread] = []
    for name, mapping in sorted(api.cells.items()):
        try:
            cells[name] = await _read_cell(name, url_of(mapping, source))
        except StorageError as error:
            unread.append(Unread(name, str(error)))
    return list(judge(api, cells)), unread


class LedgerState(NamedTuple):
    """Claims and providers of the ledger, in one snapshot: the first fields of `ApiState`."""

    claims: dict[str, Held]
    roots: dict[str, str]
    sharing: frozenset[str]


def _read_ledger(connection: Connection) -> LedgerState:
    providers = connection.execute(
        sa.select(resource_providers.c.id, resource_providers.c.uuid, resource_providers.c.parent_id)
    ).all()
    sharing = (
        sa.select(resource_providers.c.uuid)
        .join(provider_traits, provider_traits.c.provider_id == resource_providers.c.id)
        .join(traits, traits.c.id == provider_traits.c.trait_id)
        .where(traits.c.name == SHARING_TRAIT)
    )
    return LedgerState(
        claims=held_by_all(connection),
        roots=_roots((row.id, row.uuid, row.parent_id) for row in providers),
        sharing=frozenset(connection.execute(sharing).scalars()),
    )


def _read_api(claimed: LedgerState, connection: Connection) -> ApiState:
    waiting = [request.instances for request in waiting_requests(connection)]
    mappings = connection.execute(sa.select(instance_mappings)).all()
    return ApiState(
        *claimed,
        waiting=frozenset(uuid for instances in waiting for uuid in instances),
        mappings={row.instance_uuid: row.cell for row in mappings},
        deleted=frozenset(row.instance_uuid for row in mappings if row.deleted),
        cells=mapped_cells(connection),
    )


def _roots(providers: Iterable[tuple[int, str, int | None]]) -> dict[str, str]:
    """The root of each provider's tree; of one in a loop or under nothing, whatever is reached."""
    above: dict[int, tuple[str, int | None]] = {row: (uuid, parent) for row, uuid, parent in providers}
    roots: dict[str, str] = {}
    for row, (uuid, _) in above.items():
        seen = {row}
        at = row
        while (parent := above[at][1]) is not None and parent in above and parent not in seen:
            seen.add(parent)
            at = parent
        roots[uuid] = above[at][0]
    return roots


async def _read_cell(name: str, url: DatabaseUrl | str) -> CellState:
    database = Database(url, read_only=True, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        CELL_SCHEMA.check(database)
        cell = Cell(name, database)
        nodes: defaultdict[str, set[str]] = defaultdict(set)
        for report in await cell.nodes():
            nodes[report.host].add(report.node)
        return CellState(await cell.every(), dict(nodes), await cell.read(read_all_moves()))
    finally:
        await database.close()
