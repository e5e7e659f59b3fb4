"""Between the rows of a cell's tables and the values that they stand for."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec
import sqlalchemy as sa
import structlog

from roost.cells.reported import MAX_HOST, clean_metrics
from roost.model.host import HostAggregate, HostReport
from roost.model.instance import Fault, Instance
from roost.model.spec import RequestSpec, Selection
from roost.model.text import clean_text

Row = sa.Row[tuple[object, ...]]

T = TypeVar("T")
D = TypeVar("D")

_log = structlog.get_logger()
_JSON = msgspec.json.Encoder()
_ALTERNATES = msgspec.json.Decoder(tuple[Selection, ...])
_SELECTION = msgspec.json.Decoder(Selection)
_SPEC = msgspec.json.Decoder(RequestSpec)
_METRICS = msgspec.json.Decoder(dict[str, object])
_AGGREGATES = msgspec.json.Decoder(tuple[HostAggregate, ...])


def alternates_text(alternates: Sequence[Selection]) -> str:
    """Alternates as their column holds them."""
    return _JSON.encode(alternates).decode()


def selection_text(selection: Selection) -> str:
    """A selection as its column holds it."""
    return _JSON.encode(selection).decode()


def instance_row(instance: Instance, at: float) -> dict[str, object]:
    """The row of an instance that changed at ``at`` (seconds since the epoch)."""
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
        "spec": None if instance.spec is None else _JSON.encode(instance.spec).decode(),
        "selection": None if instance.selection is None else selection_text(instance.selection),
    }


def instance_of(row: Row) -> Instance:
    """The instance of a row."""
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
        alternates=_decoded(_ALTERNATES, row.alternates, (), f"alternates of instance {row.uuid}"),
        reason=row.reason,
        spec=None if row.spec is None else _decoded(_SPEC, row.spec, None, f"spec of instance {row.uuid}"),
        selection=None
        if row.selection is None
        else _decoded(_SELECTION, row.selection, None, f"selection of instance {row.uuid}"),
    )


def fault_row(fault: Fault) -> dict[str, object]:
    """The row of a fault."""
    return {
        "instance_uuid": fault.instance,
        "attempt": fault.attempt,
        "host": fault.host,
        "reason": clean_text(fault.reason),
        "at": fault.at,
    }


def host_row(report: HostReport) -> dict[str, object]:
    """The row of a host as its agent reports it."""
    return {
        "host": report.host,
        "node": report.node,
        "enabled": report.enabled,
        "last_seen": report.last_seen,
        "failed_builds": report.failed_builds,
        "metrics": _JSON.encode(report.metrics).decode(),
        "aggregates": _JSON.encode(report.aggregates).decode(),
    }


def report_of(row: Row, cell: str) -> HostReport:
    """What a host of ``cell`` last reported."""
    return HostReport(
        host=row.host,
        node=row.node,
        cell=cell,
        last_seen=row.last_seen,
        enabled=row.enabled,
        failed_builds=row.failed_builds,
        metrics=clean_metrics(_decoded(_METRICS, row.metrics, {}, f"metrics of host {row.host}")),
        aggregates=_decoded(_AGGREGATES, row.aggregates, (), f"aggregates of host {row.host}"),
    )


def _decoded(decoder: msgspec.json.Decoder[T], text: str, otherwise: D, what: str) -> T | D:
    """The value of a column; ``otherwise``, with a log line, if it cannot be read.

    One row that cannot be read must not keep all hosts and instances from being read.
    """
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        _log.error("a row cannot be read", what=what, error=str(error))
        return otherwise
