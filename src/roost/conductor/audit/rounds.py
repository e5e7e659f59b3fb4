"""Rounds of the audit over all consumers, mappings and instances, in small steps."""

from collections.abc import Callable, Collection, Iterable

from roost.conductor.audit.audit_reads import AT_ONCE, Look, look
from roost.conductor.audit.findings import DRY_RUN, Observed, allowed, judged
from roost.conductor.audit.places import Misplaced, Places, look_at_places
from roost.conductor.audit.repairs import repair
from roost.conductor.context import PlacementContext
from roost.placement.errors import NotFound, PlacementError
from roost.process.options import OptionStruct, option
from roost.scheduler.selection.claim_result import is_outage, one_line
from roost.state.api_database.audit import (
    DONE,
    LEASE,
    AuditFinding,
    HeldLease,
    RoundReport,
    begin_repair,
    begin_round,
    end_repair,
    end_round,
    read_audit_state,
)
from roost.state.api_database.cell_mappings import mapped_cells
from roost.state.api_database.mappings import page_of_mappings
from roost.state.api_database.tables import API
from roost.state.cell_database.guests import instances_with_unknown_guests
from roost.state.cell_database.instance_search import search_instances
from roost.state.leases import LeaseTimes, Tenure
from roost.storage import StorageError, Transaction

PAGE = 500
"""Instances that one step compares, about."""

FIRST_CLAIMS = 500
"""First claims that one round makes at most, for instances that never had one. With more, the looks would be
too old for the last ones; the next rounds make the rest."""

MOST_DIFFERENCES = 10_000
"""Differences that the first look of a round keeps for the second. A round with more asks an operator."""


TOLD = 3
"""Reasons of refusals in one log line at most."""

SHARE = 0.1
"""Share of the time that rounds may take. A cloud with many instances is audited less often."""


class AuditOptions(OptionStruct, frozen=True, kw_only=True, group="conductor"):
    """The times of the audit, in seconds, and the limit of its repairs.

    ``step``: between two steps. ``look``: between two checks whether an operator has asked for a round. First
    claims do not count as repairs.
    """

    every: float = option(
        60.0,
        name="audit_seconds",
        min=1.0,
        help="Least seconds between two rounds of the audit, in each of which one of the conductors compares "
        "all claims, mappings and instances. Rounds take a tenth of the time at most.",
    )
    settle: float = option(
        30.0,
        name="audit_settle_seconds",
        min=1.0,
        help="Seconds between the two looks of a round at what differs. What both see is a finding. Nothing "
        "is repaired on hosts whose agents have not polled in between.",
    )
    step: float = 0.05
    look: float = 5.0
    most_repairs: int = option(
        10,
        name="audit_repairs_limit",
        min=0,
        help="A round of the audit with more repairs than this makes none, and asks an operator: `roost "
        "audit`. With 0 it always does.",
    )


def audit_tenure(process: str, times: LeaseTimes) -> Tenure:
    """Return the lease of the audit, for which all super conductors compete.

    ``process``: the name of this process in the records of repairs.
    """
    return Tenure(LEASE, LEASE, process, times=times, shared=True)


async def audit(context: PlacementContext, tenure: Tenure, options: AuditOptions) -> None:
    """Audit for ever, while this process holds the lease."""
    due = context.monotonic() + options.every
    while True:
        await context.sleep(options.look)
        now = context.monotonic()
        if not tenure.holds(now):
            continue
        try:
            asked = (await context.read(API, read_audit_state())).asked
            if asked or now >= due:
                await audit_round(context, tenure, options)
                ended = context.monotonic()
                due = ended + max(options.every, (ended - now - options.settle) / SHARE)
        except Exception as error:
            if not (isinstance(error, PlacementError) or is_outage(error)):
                raise
            due = context.monotonic() + options.every
            context.log("a round of the audit is broken off", {"error": one_line(error)}, "warning")


async def audit_round(context: PlacementContext, tenure: Tenure, options: AuditOptions) -> None:
    """Compare everything once, look at differences again, and make the repairs that are certain.

    Raises: `StorageError` of the API database, and what placement raises.
    """
    lease = HeldLease(tenure.holder, tenure.epoch)
    before = await context.write(API, begin_round(lease))
    if before is None:
        return
    number = before.begun + 1
    walk = _Walk(context, options.step)
    await walk.all()
    places = await look_at_places(context, walk.roots)
    again, misplaced = await _second_look(context, walk, places, options.settle)
    first_look = {(each.kind, each.instance): each for each in walk.first.observed}
    confirmed = [
        each
        for each in again.observed
        if (seen := first_look.get((each.kind, each.instance))) is not None and each.same_as(seen)
    ]
    findings = [judged(each, walk.first.signs, again.signs) for each in confirmed]
    due = [place for place, each in enumerate(findings) if each.action and not each.waits_for]
    # First claims are not limited by `most_repairs`: they take nothing from others.
    unclaimed = [place for place in due if confirmed[place].is_unclaimed]
    first = [] if before.permitted == DRY_RUN else unclaimed[:FIRST_CLAIMS]
    due = [place for place in due if not confirmed[place].is_unclaimed]
    makes = allowed(len(due), options.most_repairs, before.permitted)
    asks = None
    if walk.cut_short:
        makes, asks = 0, f"more than {MOST_DIFFERENCES} differences: nothing is repaired"
    elif makes < len(due):
        limit = f"more than {options.most_repairs} at once are left to an operator"
        why = "this was a dry run" if before.permitted == DRY_RUN else limit
        asks = f"{len(due)} repairs are due; {why}"
    repaired = await _claim_first(context, tenure, lease, [(n, findings[n], confirmed[n]) for n in first])
    for place in due[:makes]:
        if await _repair(context, tenure, lease, findings[place], confirmed[place]) == DONE:
            repaired.add(place)
    left = tuple(each for place, each in enumerate(findings) if place not in repaired)
    left += tuple(each.finding() for each in sorted(misplaced))
    _tell(context, left, asks)
    report = RoundReport(
        findings=len(left), instances=len(walk.seen), unread=walk.first.unread | again.unread, asks=asks
    )
    await context.write(API, end_round(lease, number, context.clock(), left, report))


class _Walk:
    """The first look of a round at everything, in steps."""

    def __init__(self, context: PlacementContext, step: float) -> None:
        self._context = context
        self.first = Look([], {}, {})
        self.seen: set[str] = set()
        self.cut_short = False
        self._step = step
        self.roots: dict[str, str] = {}

    async def all(self) -> None:
        """Look at all consumers, mappings and rows."""
        self.roots = await self._context.placement.provider_roots()
        providers = sorted(self.roots)
        for start in range(0, len(providers), AT_ONCE):
            some = providers[start : start + AT_ONCE]
            consumers = await self._context.together([_consumers_on(self._context, each) for each in some])
            await self._look(uuid for each in consumers for uuid in each)
        after = ""
        while page := await self._context.read(API, page_of_mappings(most=PAGE, after=after)):
            after = page[-1].instance_uuid
            await self._look(each.instance_uuid for each in page)
        for cell in sorted(await self._context.read(API, mapped_cells)):
            await self._look_through(cell, search_instances)
            await self._look_through(cell, instances_with_unknown_guests)

    async def _look_through(self, cell: str, pages: Callable[..., Transaction[list[str]]]) -> None:
        after = ""
        while True:
            try:
                page = await self._context.read(f"cell/{cell}", pages(most=PAGE, after=after))
            except StorageError as error:
                self.first.unread[cell] = one_line(error)
                return
            if not page:
                return
            after = page[-1]
            await self._look(page)

    async def _look(self, uuids: Iterable[str]) -> None:
        """Look at the instances that this round has not looked at yet."""
        new = sorted({*uuids} - self.seen)
        for start in range(0, len(new), PAGE):
            some = new[start : start + PAGE]
            self.seen.update(some)
            if len(self.first.observed) >= MOST_DIFFERENCES:
                self.cut_short = True
                continue
            found = await look(self._context, some, self.roots)
            self.first.observed.extend(found.observed)
            concerned = {node for each in found.observed for node in each.nodes}
            signs = {node: sign for node, sign in found.signs.items() if node in concerned}
            self.first.signs.update(signs)
            self.first.unread.update(found.unread)
        await self._context.sleep(self._step)


async def _second_look(
    context: PlacementContext, walk: _Walk, places: Places, settle: float
) -> tuple[Look, frozenset[Misplaced]]:
    """Look again at the differences. Returns the second look, and the misplaced that both looks saw."""
    suspects = sorted({each.instance for each in walk.first.observed})
    again = Look([], {}, dict(places.unread))
    if not suspects and not places.misplaced:
        return again, places.misplaced
    await context.sleep(settle)
    roots = await context.placement.provider_roots()
    later = await look_at_places(context, roots) if places.misplaced else places
    for start in range(0, len(suspects), PAGE):
        found = await look(context, suspects[start : start + PAGE], roots)
        again.observed.extend(found.observed)
        again.signs.update(found.signs)
        again.unread.update(found.unread)
    again.unread.update(later.unread)
    return again, places.misplaced & later.misplaced


async def _claim_first(
    context: PlacementContext,
    tenure: Tenure,
    lease: HeldLease,
    unclaimed: Collection[tuple[int, AuditFinding, Observed]],
) -> set[int]:
    """Make the first claims of instances that never had one, with one warning for all of them.

    Returns the positions of the instances that have their claim now.
    """
    claimed, results = set[int](), list[str]()
    for place, finding, observed in unclaimed:
        result = await _repair(context, tenure, lease, finding, observed, tells=False)
        if result is None:
            break
        if result == DONE:
            claimed.add(place)
        else:
            results.append(f"{finding.subject}: {result}")
    if unclaimed:
        values = {"claimed": len(claimed), "refused": len(results), "reasons": results[:TOLD]}
        context.log("instances that never had a claim get it from their rows", values, "warning")
    return claimed


async def _repair(
    context: PlacementContext,
    tenure: Tenure,
    lease: HeldLease,
    finding: AuditFinding,
    observed: Observed,
    *,
    tells: bool = True,
) -> str | None:
    """Make a repair and record it; returns its result, None if others own the audit. ``tells``: log it."""
    assert finding.action is not None
    if not tenure.holds(context.monotonic()):
        return None
    at = context.clock()
    number = await context.write(API, begin_repair(lease, at, tenure.host, finding))
    if number is None:
        return None
    values = {"instance": finding.subject, "kind": finding.kind, "action": finding.action}
    if tells:
        context.log("the audit makes a repair", {**values, "detail": finding.detail}, "warning")
    result = await repair(context, finding.action, observed)
    await context.write(API, end_repair(number, result))
    if result != DONE and tells:
        context.log("a repair is not made", {**values, "result": result}, "warning")
    return result


def _tell(context: PlacementContext, left: Collection[AuditFinding], asks: str | None) -> None:
    if asks is not None:
        context.log("the audit asks an operator: roost audit", {"why": asks}, "error")
    elif left:
        context.log("the audit has findings: roost audit", {"findings": len(left)}, "warning")


async def _consumers_on(context: PlacementContext, provider: str) -> frozenset[str]:
    try:
        return await context.placement.consumers_on(provider)
    except NotFound:
        return frozenset()
