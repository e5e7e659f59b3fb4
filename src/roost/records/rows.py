"""Rows: the form in which both backends store runs and attempts.

A run is stored as a `RunRow`, an attempt as an `Attempt`, whose fields are all plain. The SQL backend has a
column for each field, and tables of instances and settings. The JSON-lines backend has a line for each row:
``{"run": {…}}``, ``{"attempt": {…}}``, ``{"reasons": {…}}`` or ``{"settings": {…}}``.
"""

from collections.abc import Iterable, Iterator

import msgspec

from roost.model.allocation import HandedClaim, KeptAllocations
from roost.model.reasons import Reasons, WeighedHost
from roost.model.record import FAILED, PENDING, Asked, Attempt, PlacementRead, Run, RunReasons, Settings, Step
from roost.model.spec import Destination, UnreadKey
from roost.model.visibility import seen, seen_by_project
from roost.records.errors import DamagedRecords

NO_REASONS = msgspec.Raw(b"null")

CLAIMED = "claimed"
"""The result of an attempt in files of earlier versions, in which a build's failure has its own line."""


class RunDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields of a run that no search uses: one JSON object. A new field needs no migration."""

    position: int | None = None
    told: tuple[PlacementRead, ...] = ()
    journal: str | None = None
    asked: Asked | None = None
    num_alternates: int = 0
    min_count: int = 0
    destinations: tuple[Destination, ...] = ()
    weighed: tuple[WeighedHost, ...] = ()
    generations: dict[str, int] = {}
    beside: dict[str, KeptAllocations] = {}
    held_by: dict[str, str] = {}
    handed: dict[str, HandedClaim] = {}
    of_instances: dict[str, str] = {}
    warnings: tuple[UnreadKey, ...] = ()


class RunWithAttempts(msgspec.Struct, frozen=True):
    """A run and its attempts, in the order of its instances, then of their ordinals."""

    run: Run
    attempts: tuple[Attempt, ...] = ()


@seen_by_project(RunWithAttempts)
def _of_project(whole: RunWithAttempts) -> RunWithAttempts:
    return RunWithAttempts(seen(whole.run), tuple(map(seen, whole.attempts)))


class RunRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A run with spec, steps, details and reasons encoded as JSON, which a search need not decode.

    ``settings``: the digest of the run's settings. A row is in no reference cycle, so the garbage collector
    need not track the rows that wait to be written.
    """

    id: str
    request_id: str
    project_id: str
    user_id: str
    instances: tuple[str, ...]
    spec: msgspec.Raw
    started_at: float
    finished_at: float
    version: int | None
    global_request_id: str | None = None
    steps: msgspec.Raw = msgspec.Raw(b"[]")
    refusal: str | None = None
    seed: int | None = None
    node_version: int | None = None
    settings: str | None = None
    details: msgspec.Raw = msgspec.Raw(b"{}")
    reasons: msgspec.Raw = NO_REASONS


class EncodedRun(msgspec.Struct, frozen=True, gc=False):
    """A run on its way to a backend: its row, and the settings that the row names."""

    row: RunRow
    settings: Settings | None


_encode = msgspec.json.Encoder().encode
_decode_object = msgspec.json.Decoder(dict[str, object]).decode
_decode_steps = msgspec.json.Decoder(tuple[Step, ...]).decode
_decode_reasons = msgspec.json.Decoder(Reasons | None).decode
_decode_details = msgspec.json.Decoder(RunDetails).decode
decode_settings = msgspec.json.Decoder(Settings).decode
_DETAILS = RunDetails.__struct_fields__
_ENCODED = ("spec", "steps", "settings", "reasons")
_PLAIN_FIELDS = tuple(name for name in Run.__struct_fields__ if name not in (*_ENCODED, *_DETAILS))


def row_of(run: Run) -> RunRow:
    """Return the row that stores a run."""
    return RunRow(
        **{field: getattr(run, field) for field in _PLAIN_FIELDS},
        spec=msgspec.Raw(_encode(run.spec)),
        steps=msgspec.Raw(_encode(run.steps)),
        settings=None if run.settings is None else run.settings.digest,
        details=msgspec.Raw(_encode(RunDetails(**{field: getattr(run, field) for field in _DETAILS}))),
        reasons=NO_REASONS if run.reasons is None else reasons_json(run.reasons),
    )


def encoded(run: Run) -> EncodedRun:
    """Return a run in the form that backends take.

    Raises:
        UnicodeEncodeError, TypeError, ValueError: a part of the run cannot be encoded as JSON.
    """
    return EncodedRun(row_of(run), run.settings)


def reasons_json(reasons: Reasons) -> msgspec.Raw:
    """Return reasons in the form of a row."""
    return msgspec.Raw(_encode(reasons))


def run_with_attempts(
    row: RunRow,
    attempts: Iterable[Attempt],
    settings: Settings | None = None,
    reasons: RunReasons | None = None,
) -> RunWithAttempts:
    """Return the run that a row stores, with its settings and its attempts, by instance and ordinal.

    ``attempts`` are in the order in which they were recorded. ``reasons`` were recorded after the run.

    Raises:
        DamagedRecords: a part of the row cannot be decoded.
    """
    plain = {field: getattr(row, field) for field in _PLAIN_FIELDS}
    try:
        details = _decode_details(row.details)
        run = Run(
            **plain,
            **{field: getattr(details, field) for field in _DETAILS},
            spec=_decode_object(row.spec),
            steps=_decode_steps(row.steps),
            settings=settings,
            reasons=_decode_reasons(row.reasons),
        )
    except msgspec.DecodeError as error:
        raise DamagedRecords(f"run {row.id}: a part of it is unreadable: {error}") from error
    if reasons is not None:
        run = msgspec.structs.replace(run, reasons=reasons.reasons)
    return RunWithAttempts(run, merged(run.instances, attempts))


def merged(instances: tuple[str, ...], attempts: Iterable[Attempt]) -> tuple[Attempt, ...]:
    """Merge the records of each attempt; it has ended if an end is recorded, in any order with its begin."""
    merged: dict[tuple[str, int], Attempt] = {}
    for attempt in _numbered(attempts):
        key = attempt.instance, attempt.ordinal
        known = merged.get(key)
        merged[key] = attempt if known is None else _one(known, attempt)
    place = {instance: position for position, instance in enumerate(instances)}

    def order(each: Attempt) -> tuple[int, str, int]:
        return place.get(each.instance, len(place)), each.instance, each.ordinal

    return tuple(sorted(merged.values(), key=order))


def _one(known: Attempt, other: Attempt) -> Attempt:
    """Merge two records of one attempt: its begin, and the end that was recorded first."""
    begin, end = (other, known) if other.result == PENDING else (known, other)
    if begin.result != PENDING or end.result == PENDING:
        return known
    return msgspec.structs.replace(begin, result=end.result, reason=end.reason, finished_at=end.finished_at)


def _numbered(attempts: Iterable[Attempt]) -> Iterator[Attempt]:
    """Yield attempts; those of earlier versions get ordinals in the order in which they were recorded."""
    old: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.ordinal:
            yield attempt
        else:
            of_instance = old.setdefault(attempt.instance, [])
            if attempt not in of_instance:
                of_instance.append(attempt)
    for of_instance in old.values():
        ordinals: dict[str, int] = {}
        last = 0
        for attempt in of_instance:
            if attempt.result == FAILED and attempt.host in ordinals:
                ordinal = ordinals[attempt.host]
            else:
                last += 1
                ordinal = last
            pending = attempt.result in (CLAIMED, PENDING)
            if pending:
                ordinals[attempt.host] = ordinal
            yield msgspec.structs.replace(
                attempt,
                ordinal=ordinal,
                result=PENDING if pending else attempt.result,
                finished_at=None if pending else attempt.at,
            )
