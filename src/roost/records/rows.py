"""Rows: the form in which both backends store runs and attempts.

A run is stored as a `RunRow`, an attempt as an `Attempt`, whose fields are all plain. The SQL backend has a
column for each field, and a table of instances. The JSON-lines backend has a line ``{"run": {…}}``
or ``{"attempt": {…}}`` for each row.
"""

from collections.abc import Iterable

import msgspec

from roost.model.record import Attempt, Run, Step
from roost.records.errors import DamagedRecords
from roost.records.records import RunWithAttempts


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose request spec and steps are encoded as JSON, so that a search need not decode them."""

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

    def matches(self, request_id: str | None, instance: str | None) -> bool:
        """Whether this is a run of this request and for this instance; None stands for any."""
        of_request = request_id in (None, self.request_id, self.global_request_id)
        return of_request and (instance is None or instance in self.instances)


_encode = msgspec.json.Encoder().encode
_decode_spec = msgspec.json.Decoder(dict[str, object]).decode
_decode_steps = msgspec.json.Decoder(tuple[Step, ...]).decode
_PLAIN_FIELDS = tuple(field for field in Run.__struct_fields__ if field not in ("spec", "steps"))


def row_of(run: Run) -> RunRow:
    """Return the row that stores a run."""
    plain = {field: getattr(run, field) for field in _PLAIN_FIELDS}
    return RunRow(**plain, spec=msgspec.Raw(_encode(run.spec)), steps=msgspec.Raw(_encode(run.steps)))


def run_with_attempts(row: RunRow, attempts: Iterable[Attempt]) -> RunWithAttempts:
    """Return the run that a row stores, with its attempts in order of time.

    ``attempts`` are in the order in which they were recorded. Equal ones are one attempt: a write whose
    outcome was unknown is repeated.

    Raises:
        DamagedRecords: the row's spec or steps cannot be decoded.
    """
    plain = {field: getattr(row, field) for field in _PLAIN_FIELDS}
    try:
        run = Run(**plain, spec=_decode_spec(row.spec), steps=_decode_steps(row.steps))
    except msgspec.DecodeError as error:
        raise DamagedRecords(f"run {row.id}: its spec or its steps are unreadable: {error}") from error
    return RunWithAttempts(run, tuple(sorted(dict.fromkeys(attempts), key=lambda attempt: attempt.at)))
