"""The two formats of log records, text and JSON.

Neither lets a value start a new line or carry a control character: the values may be a client's.
"""

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

from roost.logs.request_ids import RequestIds, current_requests

SHOWN_REQUESTS = 8
"""Requests of a shared commit whose ids stand in a line. Of further ones the line has the number."""

BLOCK = "block"
"""The key of a value that the text format writes as indented lines after the record's own line."""

_COLUMNS = ("time", "level", "process", "logger", "event", "exception", BLOCK)


def make_formatter(as_json: bool = False, date_format: str | None = None) -> logging.Formatter:
    """Return the formatter of all log records.

    ``date_format``: of the local time, for strftime. None: UTC with milliseconds, by ISO 8601.
    """

    def add_columns(_logger: object, _method: str, event: EventDict) -> EventDict:
        record: logging.LogRecord = event["_record"]
        event["time"] = _time(record.created, date_format)
        event["level"] = record.levelname.lower()
        event["process"] = record.process
        event["logger"] = record.name
        return event

    render: Processor = _render_json if as_json else _render_text
    return structlog.stdlib.ProcessorFormatter(
        processors=[
            add_columns,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            render,
        ]
    )


def _time(seconds: float, date_format: str | None) -> str:
    time = datetime.fromtimestamp(seconds, UTC)
    if date_format is None:
        return time.isoformat(timespec="milliseconds")
    return time.astimezone().strftime(date_format)


def _render_text(_logger: object, _method: str, event: EventDict) -> str:
    time, level, process, logger, text, exception, block = (event.pop(name, None) for name in _COLUMNS)
    requests = current_requests()
    ids = f" [{_ids(requests)}]" if requests else ""
    values = "".join(f" {key}={_on_one_line(repr(value))}" for key, value in event.items())
    line = f"{time} {level} {process} {logger}{ids}: {_on_one_line(str(text))}{values}"
    # Indented, so that no line of an error's text can pass for a record.
    return "\n    ".join((line, *_lines(exception), *_lines(block)))


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else repr(text)


def _lines(text: str | None) -> Iterator[str]:
    for line in text.splitlines() if text else ():
        yield line if line.isprintable() else repr(line)[1:-1]


def _ids(requests: tuple[RequestIds, ...]) -> str:
    shown = ", ".join(
        own if of_caller is None else f"{own} {of_caller}" for own, of_caller in requests[:SHOWN_REQUESTS]
    )
    more = len(requests) - SHOWN_REQUESTS
    return shown if more <= 0 else f"{shown} and {more} more"


def _render_json(_logger: object, _method: str, event: EventDict) -> str:
    columns = {name: event.pop(name) for name in _COLUMNS if name in event}
    columns["event"] = str(columns.get("event"))
    requests = current_requests()
    if len(requests) == 1:
        columns["request_id"], of_caller = requests[0]
        if of_caller is not None:
            columns["global_request_id"] = of_caller
    elif requests:
        columns["request_ids"] = [own for own, _ in requests]
    values = {**event, **columns}
    try:
        text = _encode(values)
    except (TypeError, ValueError):
        # A value that JSON lacks, such as NaN, or a key that is no text.
        text = _encode({name: _plain(value) for name, value in values.items()})
    # JSON may hold this control character as it is.
    return text.replace("\x7f", "\\u007f")


_encode = json.JSONEncoder(allow_nan=False, default=repr).encode


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | None) else repr(value)
