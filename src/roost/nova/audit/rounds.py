"""The rounds of the audit, under a lease among the bridges, and the writes that free unanswered claims."""

import time
from collections.abc import Callable, Iterable, Sequence

import msgspec
import structlog

from roost.ledger import Held
from roost.model.allocation import Allocations
from roost.nova.audit.looks import AuditLook, CellsUnread
from roost.nova.audit.suspects import Suspects
from roost.nova.audit.unanswered import BESIDE, SHELVED, ClaimSuspect, suspect_of
from roost.nova.database.cells import NovaCells
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import PlacementError
from roost.placement.interface import Placement
from roost.process.context import Context
from roost.process.metrics import nova_bridge as metrics
from roost.records import RecordsError
from roost.records.records import Records
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.selection.claim_result import is_outage, one_line
from roost.state.api_database.audit import (
    DONE,
    KEPT_FINDINGS,
    LEASE,
    AuditFinding,
    HeldLease,
    RoundReport,
    begin_repair,
    begin_round,
    end_repair,
    end_round,
    read_findings,
)
from roost.state.api_database.tables import API
from roost.state.leases import LeaseTimes, Tenure
from roost.storage import StorageError

LOOK_SECONDS = 5.0
"""Seconds between two looks whether a round is due and this process holds the lease."""

UNCONFIRMED = "a second round that sees the same"
NOT_ALLOWED = "an operator: [nova_bridge] free_unanswered_claims is not set"

_log = structlog.get_logger()


class UnansweredRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of the audit.

    ``every``: seconds between two rounds. ``frees``: confirmed claims are freed. ``timeout``: seconds after
    which no caller waits for an answer any more.
    """

    every: float
    frees: bool
    timeout: float


class NovaAuditState(msgspec.Struct, frozen=True):
    """The last round of this process. ``at``: its end in seconds since the epoch, None before the first."""

    at: float | None = None
    findings: Sequence[AuditFinding] = ()
    freed: int = 0
    unread: dict[str, str] = {}


def bridge_audit_tenure(process: str, times: LeaseTimes | None = None) -> Tenure:
    """Return the lease of the audit, for which all bridges of a database compete."""
    return Tenure(LEASE, LEASE, process, times=times or LeaseTimes(), shared=True)


class NovaAudit:
    """The audit of one process. ``state``: what its last round found.

    ``context`` has the bridge's own database as ``api``.
    """

    def __init__(
        self,
        context: Context,
        tenure: Tenure,
        cells: NovaCells,
        placement: Placement,
        table: NodeTable,
        records: Records,
        rules: UnansweredRules,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state = NovaAuditState()
        self._context = context
        self._tenure = tenure
        self._cells = cells
        self._placement = placement
        self._table = table
        self._rules = rules
        self._monotonic = monotonic
        self._suspects = Suspects(records, rules.timeout)

    async def run(self) -> None:
        """Make rounds until cancelled, while this process holds the lease."""
        due = self._monotonic() + self._rules.every
        while True:
            await self._context.sleep(LOOK_SECONDS)
            now = self._monotonic()
            if not self._tenure.holds(now):
                # Another process tells what is found.
                metrics.NOVA_UNANSWERED.set(0)
                continue
            if now < due:
                continue
            due = now + self._rules.every
            try:
                await self.round()
            except Exception as error:
                if not (isinstance(error, PlacementError | RecordsError) or is_outage(error)):
                    raise
                metrics.NOVA_AUDIT_ROUNDS.labels("failed").inc()
                _log.warning("a round of the audit is broken off", error=one_line(error))

    async def round(self) -> None:
        """Make one round, if this process holds the lease.

        Raises: `StorageError` of the bridge's own database or Nova's API database, `RecordsError`, and what
        placement raises.
        """
        lease = HeldLease(self._tenure.holder, self._tenure.epoch)
        before = await self._context.write(API, begin_round(lease))
        if before is None:
            return
        number = before.begun + 1
        last = [each for _, each in await self._context.read(API, read_findings(0, KEPT_FINDINGS))]
        clock = self._context.clock()
        try:
            suspects, found, requested = await self._look(last)
        except CellsUnread as error:
            report = RoundReport(findings=len(last), unread=dict(error.reasons))
            await self._context.write(API, end_round(lease, number, clock, tuple(last), report))
            self.state = msgspec.structs.replace(self.state, unread=report.unread)
            metrics.NOVA_AUDIT_ROUNDS.labels("cells_away").inc()
            _log.warning("the audit acts on nothing: cells do not answer", cells=report.unread)
            return
        left, freed = await self._judged(lease, last, found)
        report = RoundReport(findings=len(left), instances=suspects)
        if not await self._context.write(API, end_round(lease, number, clock, tuple(left), report)):
            return
        self._suspects.judged(clock, self._monotonic(), requested)
        self.state = NovaAuditState(self._context.clock(), left, self.state.freed + freed)
        metrics.NOVA_AUDIT_ROUNDS.labels("complete").inc()
        _tell(left)

    async def _look(
        self, last: Iterable[AuditFinding]
    ) -> tuple[int, list[tuple[AuditFinding, Held]], Sequence[ClaimSuspect]]:
        """Return the number of suspects, the claims that nobody answered for, and the suspects whose build
        request is still there."""
        cell0, unread = self._cells.cell0, dict(self._cells.unusable)
        if cell0 is None:
            raise CellsUnread({"cell0": "it has no cell mapping that can be used", **unread})
        if unread:
            raise CellsUnread(unread)
        cells = [*self._cells.cells.values(), cell0]
        suspects: dict[str, ClaimSuspect] = {}

        def suspect(more: Iterable[ClaimSuspect]) -> None:
            """Add suspects. The first recorded claim of an instance counts: it is the last one."""
            for each in more:
                known = suspects.get(each.instance)
                if known is None or known.claimed is None:
                    suspects[each.instance] = each

        moved: set[str] = set()
        for cell in cells:
            try:
                if cell is cell0:
                    suspect(await self._suspects.buried(cell0))
                else:
                    found = [
                        *await self._suspects.evacuated(cell),
                        *await self._suspects.unshelved(cell),
                    ]
                    suspect(found)
                    moved |= {each.instance for each in found}
            except StorageError as error:
                raise CellsUnread({cell.name: str(error)}) from error
        suspect(map(suspect_of, last))
        moved |= {each.subject for each in last if each.kind in (BESIDE, SHELVED)}
        look = AuditLook(self._cells.api, cells, self._placement, self._table, self._suspects.recorded)
        findings = await look.at(suspects.values(), moved)
        # These may be many, so that they are judged as they are read. An instance is judged once.
        judged = set(suspects)
        async for some in self._suspects.of_records(self._context.clock()):
            new = {each.instance: each for each in reversed(some) if each.instance not in judged}
            judged |= new.keys()
            findings += await look.at(new.values(), moved)
        # The records may have had a later claim of one that waits.
        waiting = [each for each in self._suspects.waiting if each.instance not in judged]
        findings += await look.at(waiting, moved)
        return len(judged) + len(waiting), findings, look.requested

    async def _judged(
        self, lease: HeldLease, last: Iterable[AuditFinding], found: Iterable[tuple[AuditFinding, Held]]
    ) -> tuple[list[AuditFinding], int]:
        """Free the confirmed claims if that is allowed. Returns the findings that are left, and the number
        of freed claims."""
        seen = {(each.kind, each.subject): each for each in last}
        left: list[AuditFinding] = []
        freed = 0
        for finding, held in found:
            before = seen.get((finding.kind, finding.subject))
            if before is None or before.proof != finding.proof:
                waits = finding.waits_for or UNCONFIRMED
            elif finding.action is None:
                waits = finding.waits_for or ""
            elif not self._rules.frees:
                waits = NOT_ALLOWED
            else:
                result = await self._free(lease, finding, held)
                if result == DONE:
                    freed += 1
                    continue
                waits = f"another round: {result}"
            left.append(msgspec.structs.replace(finding, waits_for=waits))
        return left, freed

    async def _free(self, lease: HeldLease, finding: AuditFinding, held: Held) -> str:
        """Free a claim at the generation that was read. Returns the result.

        The hardware of the source, which a claim beside it has moved, is assigned to nobody then: nothing
        tells any more which it was.
        """
        if not self._tenure.holds(self._monotonic()):
            return "refused: another process has the audit"
        at = self._context.clock()
        number = await self._context.write(API, begin_repair(lease, at, self._tenure.host, finding))
        if number is None:
            return "refused: another process has the audit"
        kept: Allocations = finding.proof["kept"]
        consumer = held.consumer
        write = ConsumerWrite(
            consumer=consumer.uuid,
            allocations=kept,
            project_id=consumer.project_id,
            user_id=consumer.user_id,
            generation=consumer.generation,
        )
        result = DONE
        try:
            await self._placement.write_allocations((write,))
        except PlacementError as error:
            if is_outage(error):
                raise
            result = f"refused: {one_line(error)}"
        await self._context.write(API, end_repair(number, result))
        done = result == DONE
        metrics.NOVA_FREED_CLAIMS.labels("freed" if done else "refused").inc()
        _log.warning(
            "a claim that nobody answered for is freed" if done else "a claim is not freed",
            kind=finding.kind,
            instance=finding.subject,
            **({} if done else {"result": result}),
        )
        return result


def _tell(left: Sequence[AuditFinding]) -> None:
    metrics.NOVA_UNANSWERED.set(len(left))
    confirmed = [each for each in left if each.waits_for != UNCONFIRMED]
    if confirmed:
        _log.warning(
            "the audit has found claims that nobody answered for",
            claims=len(confirmed),
            instances=[each.subject for each in confirmed[:10]],
        )
