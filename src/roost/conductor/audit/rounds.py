"""The machine of the audit: rounds over all consumers, mappings and instances, in small steps."""

from collections.abc import Collection, Iterable

import msgspec

from roost.conductor.audit.audit_reads import AT_ONCE, Look, look
from roost.conductor.audit.findings import DRY_RUN, Observed, allowed, judged
from roost.conductor.audit.places import Misplaced, Places, look_at_places
from roost.conductor.audit.repairs import repair
from roost.conductor.questions import PLACEMENT, ConsumersOn, ProviderRoots
from roost.machine import Ask, Clock, Log, Machine, Monotonic, Read, Sleep, Together, Write
from roost.placement.errors import NotFound, PlacementError
from roost.scheduler.selection.claim_result import is_outage, one_line
from roost.state.api_database.audit import (
    DONE,
    LEASE,
    AuditFinding,
    BeginRepair,
    BeginRound,
    EndRepair,
    EndRound,
    HeldLease,
    ReadState,
    RoundReport,
)
from roost.state.api_database.cell_mappings import mapped_cells
from roost.state.api_database.mappings import PageOfMappings
from roost.state.api_database.tables import API
from roost.state.cell_database.instance_search import SearchInstances
from roost.state.cell_database.unknown_guests import PageOfUnknownGuests
from roost.state.leases import LeaseTimes, Tenure
from roost.storage import StorageError

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


class AuditOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The times of the audit, and the limit of its repairs.

    Seconds: ``every`` between two rounds at least, ``settle`` between the two looks of a round, ``step``
    between two steps, ``look`` between two checks whether an operator has asked for a round. A host that does
    not poll within ``settle`` counts as silent. ``most_repairs``: a round with more repairs, first claims
    aside, makes none, and asks an operator.
    """

    every: float = 60.0
    settle: float = 30.0
    step: float = 0.05
    look: float = 5.0
    most_repairs: int = 10


def audit_tenure(process: str, times: LeaseTimes) -> Tenure:
    """Return the lease of the audit, for which all super conductors compete.

    ``process``: the name of this process in the records of repairs.
    """
    return Tenure(LEASE, LEASE, process, times=times, shared=True)


def audit(tenure: Tenure, options: AuditOptions) -> Machine[None]:
    """Audit for ever, while this process holds the lease."""
    due = (yield from Monotonic().do()) + options.every
    while True:
        yield from Sleep(options.look).do()
        now = yield from Monotonic().do()
        if not tenure.holds(now):
            continue
        try:
            asked = (yield from Read(API, ReadState()).do()).asked
            if asked or now >= due:
                yield from audit_round(tenure, options)
                ended = yield from Monotonic().do()
                due = ended + max(options.every, (ended - now - options.settle) / SHARE)
        except Exception as error:
            if not (isinstance(error, PlacementError) or is_outage(error)):
                raise
            due = (yield from Monotonic().do()) + options.every
            yield from Log("a round of the audit is broken off", {"error": one_line(error)}, "warning").do()


def audit_round(tenure: Tenure, options: AuditOptions) -> Machine[None]:
    """Compare everything once, look at differences again, and make the repairs that are certain.

    Raises: `StorageError` of the API database, and what placement raises.
    """
    lease = HeldLease(tenure.holder, tenure.epoch)
    before = yield from Write(API, BeginRound(lease)).do()
    if before is None:
        return
    number = before.begun + 1
    walk = _Walk(options.step)
    yield from walk.all()
    places = yield from look_at_places(walk.roots)
    again, misplaced = yield from _second_look(walk, places, options.settle)
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
    repaired = yield from _claim_first(tenure, lease, [(n, findings[n], confirmed[n]) for n in first])
    for place in due[:makes]:
        if (yield from _repair(tenure, lease, findings[place], confirmed[place])) == DONE:
            repaired.add(place)
    left = tuple(each for place, each in enumerate(findings) if place not in repaired)
    left += tuple(each.finding() for each in sorted(misplaced))
    yield from _tell(left, asks)
    report = RoundReport(
        findings=len(left), instances=len(walk.seen), unread=walk.first.unread | again.unread, asks=asks
    )
    yield from Write(API, EndRound(lease, number, (yield from Clock().do()), left, report)).do()


class _Walk:
    """The first look of a round at everything, in steps."""

    def __init__(self, step: float) -> None:
        self.first = Look([], {}, {})
        self.seen: set[str] = set()
        self.cut_short = False
        self._step = step
        self.roots: dict[str, str] = {}

    def all(self) -> Machine[None]:
        """Look at all consumers, mappings and rows."""
        self.roots = yield from Ask(PLACEMENT, ProviderRoots()).do()
        providers = sorted(self.roots)
        for start in range(0, len(providers), AT_ONCE):
            some = providers[start : start + AT_ONCE]
            consumers = yield from Together([_consumers_on(each) for each in some]).do()
            yield from self._look(uuid for each in consumers for uuid in each)
        after = ""
        while page := (yield from Read(API, PageOfMappings(most=PAGE, after=after)).do()):
            after = page[-1].instance_uuid
            yield from self._look(each.instance_uuid for each in page)
        for cell in sorted((yield from Read(API, mapped_cells).do())):
            yield from self._look_through(cell, SearchInstances)
            yield from self._look_through(cell, PageOfUnknownGuests)

    def _look_through(
        self, cell: str, pages: type[SearchInstances] | type[PageOfUnknownGuests]
    ) -> Machine[None]:
        after = ""
        while True:
            try:
                page = yield from Read(f"cell/{cell}", pages(most=PAGE, after=after)).do()
            except StorageError as error:
                self.first.unread[cell] = one_line(error)
                return
            if not page:
                return
            after = page[-1]
            yield from self._look(page)

    def _look(self, uuids: Iterable[str]) -> Machine[None]:
        """Look at the instances that this round has not looked at yet."""
        new = sorted({*uuids} - self.seen)
        for start in range(0, len(new), PAGE):
            some = new[start : start + PAGE]
            self.seen.update(some)
            if len(self.first.observed) >= MOST_DIFFERENCES:
                self.cut_short = True
                continue
            found = yield from look(some, self.roots)
            self.first.observed.extend(found.observed)
            concerned = {node for each in found.observed for node in each.nodes}
            signs = {node: sign for node, sign in found.signs.items() if node in concerned}
            self.first.signs.update(signs)
            self.first.unread.update(found.unread)
        yield from Sleep(self._step).do()


def _second_look(walk: _Walk, places: Places, settle: float) -> Machine[tuple[Look, frozenset[Misplaced]]]:
    """Look again at the differences. Returns the second look, and the misplaced that both looks saw."""
    suspects = sorted({each.instance for each in walk.first.observed})
    again = Look([], {}, dict(places.unread))
    if not suspects and not places.misplaced:
        return again, places.misplaced
    yield from Sleep(settle).do()
    roots = yield from Ask(PLACEMENT, ProviderRoots()).do()
    later = (yield from look_at_places(roots)) if places.misplaced else places
    for start in range(0, len(suspects), PAGE):
        found = yield from look(suspects[start : start + PAGE], roots)
        again.observed.extend(found.observed)
        again.signs.update(found.signs)
        again.unread.update(found.unread)
    again.unread.update(later.unread)
    return again, places.misplaced & later.misplaced


def _claim_first(
    tenure: Tenure, lease: HeldLease, unclaimed: Collection[tuple[int, AuditFinding, Observed]]
) -> Machine[set[int]]:
    """Make the first claims of instances that never had one, with one warning for all of them.

    Returns the positions of the instances that have their claim now.
    """
    claimed, results = set[int](), list[str]()
    for place, finding, observed in unclaimed:
        result = yield from _repair(tenure, lease, finding, observed, tells=False)
        if result is None:
            break
        if result == DONE:
            claimed.add(place)
        else:
            results.append(f"{finding.subject}: {result}")
    if unclaimed:
        values = {"claimed": len(claimed), "refused": len(results), "reasons": results[:TOLD]}
        yield from Log("instances that never had a claim get it from their rows", values, "warning").do()
    return claimed


def _repair(
    tenure: Tenure, lease: HeldLease, finding: AuditFinding, observed: Observed, *, tells: bool = True
) -> Machine[str | None]:
    """Make a repair and record it; returns its result, None if others own the audit. ``tells``: log it."""
    assert finding.action is not None
    if not tenure.holds((yield from Monotonic().do())):
        return None
    at = yield from Clock().do()
    number = yield from Write(API, BeginRepair(lease, at, tenure.host, finding)).do()
    if number is None:
        return None
    values = {"instance": finding.subject, "kind": finding.kind, "action": finding.action}
    if tells:
        yield from Log("the audit makes a repair", {**values, "detail": finding.detail}, "warning").do()
    result = yield from repair(finding.action, observed)
    yield from Write(API, EndRepair(number, result)).do()
    if result != DONE and tells:
        yield from Log("a repair is not made", {**values, "result": result}, "warning").do()
    return result


def _tell(left: Collection[AuditFinding], asks: str | None) -> Machine[None]:
    if asks is not None:
        yield from Log("the audit asks an operator: roost audit", {"why": asks}, "error").do()
    elif left:
        yield from Log("the audit has findings: roost audit", {"findings": len(left)}, "warning").do()


def _consumers_on(provider: str) -> Machine[frozenset[str]]:
    try:
        return (yield from Ask(PLACEMENT, ConsumersOn(provider)).do())
    except NotFound:
        return frozenset()
