"""The conversions between rows of a cell's tables and values, and the columns that they need."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec
import sqlalchemy as sa
import structlog

from roost.model.instance import REBUILDING_STOPPED, BuildAttempt, Instance, Shelf
from roost.model.node import NodeReport
from roost.model.spec import RequestSpec, Selection
from roost.model.text import clean_text
from roost.state.cell_database.reported import MAX_HOST, clean_report
from roost.state.cell_database.tables import instances
from roost.storage import one_of

Row = sa.Row[tuple[object, ...]]

T = TypeVar("T")
D = TypeVar("D")

_log = structlog.get_logger()
_JSON = msgspec.json.Encoder()
_SORTED = msgspec.json.Encoder(order="deterministic")
"""The encoder of reports: equal reports have equal texts."""
_ALTERNATES = msgspec.json.Decoder(tuple[Selection, ...])
_SELECTION = msgspec.json.Decoder(Selection)
_SPEC = msgspec.json.Decoder(RequestSpec)
_SHELF = msgspec.json.Decoder(Shelf)
_FACTS = msgspec.json.Decoder(dict[str, object])
_COLUMNS = ("node", "host", "nodename", "enabled")
"""Fields of a report that have a column of their own. ``cell`` has none, as the database is the cell's, and
``last_seen`` is not stored."""
_OTHERS = {
    field.name: field.type
    for field in msgspec.structs.fields(NodeReport)
    if field.name not in (*_COLUMNS, "cell", "last_seen")
}

_NOT_OF_IT = ("changed_at", "began", "history")
INSTANCES = sa.select(*(column for column in instances.columns if column.name not in _NOT_OF_IT))
"""The query of the columns from which `instance_of` makes an instance."""


def of_consumers(name: str) -> sa.ColumnElement[bool]:
    """Return the condition of the instances whose consumers are among the parameter ``name``."""
    own = one_of(instances.c.uuid, name) & instances.c.consumer.is_(None)
    return own | one_of(instances.c.consumer, name)


PRESENT = tuple(
    instances.c[name]
    for name in (
        "uuid",
        "request_id",
        "run",
        "attempt",
        "state",
        "host",
        "node",
        "selection",
        "began",
        "move",
        "consumer",
        "shelf",
    )
)
"""The columns of an instance that describe its present attempt."""


def alternates_text(alternates: Sequence[Selection]) -> str:
    """Return alternates as their column holds them."""
    return _JSON.encode(alternates).decode()


def selection_text(selection: Selection) -> str:
    """Return a selection as its column holds it."""
    return _JSON.encode(selection).decode()


def spec_text(spec: RequestSpec) -> str:
    """Return a request spec as its column holds it."""
    return _JSON.encode(spec).decode()


def shelf_text(shelf: Shelf) -> str:
    """Return the facts of a shelved instance as their column holds them."""
    return _JSON.encode(shelf).decode()


def instance_row(instance: Instance, at: float) -> dict[str, object]:
    """Return the row of an instance that changed at ``at`` (seconds since the epoch)."""
    return {
        "uuid": instance.uuid,
        "request_id": instance.request_id,
        "run": instance.run,
        "project_id": instance.project_id,
        "user_id": instance.user_id,
        "flavor": clean_text(instance.flavor, MAX_HOST),
        "state": instance.state,
        "host": instance.host,
        "node": instance.node,
        "attempt": instance.attempt,
        "alternates": alternates_text(instance.alternates),
        "reason": None if instance.reason is None else clean_text(instance.reason),
        "changed_at": at,
        "spec": None if instance.spec is None else spec_text(instance.spec),
        "selection": None if instance.selection is None else selection_text(instance.selection),
        "epoch": instance.epoch,
        "owner": instance.owner,
        "owner_epoch": instance.owner_epoch,
        "move": instance.move,
        "began": at,
        "consumer": None if instance.consumer == instance.uuid else instance.consumer,
        "shelf": None if instance.shelf is None else shelf_text(instance.shelf),
    }


def instance_of(row: Row) -> Instance:
    """Return the instance of a row."""
    shelf = shelf_of(row)
    return Instance(
        uuid=row.uuid,
        request_id=row.request_id,
        run=row.run,
        project_id=row.project_id,
        user_id=row.user_id,
        flavor=row.flavor,
        state=row.state,
        host=row.host,
        node=row.node,
        attempt=row.attempt,
        alternates=decoded(_ALTERNATES, row.alternates, (), f"alternates of instance {row.uuid}"),
        reason=row.reason,
        spec=None if row.spec is None else decoded(_SPEC, row.spec, None, f"spec of instance {row.uuid}"),
        selection=selection_of(row),
        epoch=row.epoch,
        owner=row.owner,
        owner_epoch=row.owner_epoch,
        move=row.move,
        starts=row.state != REBUILDING_STOPPED,
        finds_disks=shelf is not None and shelf.store is not None,
        consumer=row.consumer or row.uuid,
        shelf=shelf,
    )


def shelf_of(row: Row) -> Shelf | None:
    """Return what is kept of the instance of a row; None if it is not shelved."""
    if row.shelf is None:
        return None
    return decoded(_SHELF, row.shelf, None, f"shelf of instance {row.uuid}")


def selection_of(row: Row) -> Selection | None:
    """Return the selection, with the claim, of the instance of a row; None if the row has none."""
    if row.selection is None:
        return None
    return decoded(_SELECTION, row.selection, None, f"selection of instance {row.uuid}")


def attempt_row(ended: BuildAttempt) -> dict[str, object]:
    """Return the row of an attempt that has ended."""
    return {
        "instance_uuid": ended.instance,
        "attempt": ended.attempt,
        "host": ended.host,
        "node": ended.node,
        "began": ended.began,
        "ended": ended.ended,
        "result": ended.result,
        "code": None if ended.code is None else clean_text(ended.code, MAX_HOST),
        "reason": clean_text(ended.reason),
    }


def attempt_of(row: Row) -> BuildAttempt:
    """Return the attempt of a row."""
    return BuildAttempt(
        instance=row.instance_uuid,
        attempt=row.attempt,
        host=row.host,
        node=row.node,
        began=row.began,
        ended=row.ended,
        result=row.result,
        reason=row.reason,
        code=row.code,
    )


def node_row(report: NodeReport) -> dict[str, object]:
    """Return the row of a node as its agent reports it."""
    facts = msgspec.to_builtins(report)
    return {
        "node": report.node,
        "host": report.host,
        "nodename": report.nodename or report.host,
        "enabled": report.enabled,
        "facts": _SORTED.encode({name: facts[name] for name in _OTHERS if name in facts}).decode(),
    }


def report_of(row: Row, cell: str) -> NodeReport:
    """Return the last report of a node of ``cell``. Unreadable facts are left out, with a log line."""
    facts: dict[str, object] = {}
    for name, value in decoded(_FACTS, row.facts, {}, f"facts of node {row.node}").items():
        if name in _OTHERS:
            try:
                facts[name] = msgspec.convert(value, _OTHERS[name])
            except msgspec.ValidationError as error:
                _log.error("a row cannot be read", what=f"{name} of node {row.node}", error=str(error))
    report = NodeReport(
        node=row.node,
        host=row.host,
        nodename="" if row.nodename == row.host else row.nodename,
        cell=cell,
        enabled=row.enabled,
        **facts,  # type: ignore[arg-type]
    )
    return clean_report(report)


def decoded(decoder: msgspec.json.Decoder[T], text: str, otherwise: D, what: str) -> T | D:
    """Return the value of a column; ``otherwise``, with a log line, if it cannot be read.

    One row that cannot be read must not keep all nodes and instances from being read.
    """
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        _log.error("a row cannot be read", what=what, error=str(error))
        return otherwise
