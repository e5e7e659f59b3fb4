"""The two formats of log records, text and JSON.

Neither lets a value start a new line or carry a control character: the values may be a client's.
"""

import json
import logging
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from roost.model.secrets import safe_message
from roost.process.logs.request_ids import RequestIds, current_requests

SHOWN_REQUESTS = 8
"""Request ids of a shared commit that a line shows. Of further ones it has only the number."""

BLOCK = "block"
"""The key of a value that the text format writes as indented lines after the record's own line."""

MARK = "_name"
"""The attribute by which structlog marks its records, whose message is a dictionary."""


class LineFormatter(logging.Formatter):
    """The formatter of all log records, those of structlog and of libraries.

    structlog's own formatter makes a second record of each, which doubles the cost of a line.
    ``date_format``: for strftime, of the local time. None: UTC with milliseconds, by ISO 8601.
    """

    def __init__(self, as_json: bool = False, date_format: str | None = None) -> None:
        super().__init__()
        self._render = _render_json if as_json else _render_text
        self._date_format = date_format

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, with the lines of its traceback."""
        if MARK in record.__dict__:
            values = {key: _safe(value) for key, value in record.msg.items()}  # type: ignore[union-attr]
            event = str(values.pop("event", ""))
            error = _error(values.pop("exc_info", None))
        else:
            values, event, error = {}, _safe(record.getMessage()), record.exc_info
        columns: dict[str, Any] = {
            "time": _time(record.created, self._date_format),
            "level": record.levelname.lower(),
            "process": record.process,
            "logger": record.name,
            "event": event,
        }
        if error and error[0] is not None:
            columns["exception"] = _safe("".join(traceback.format_exception(*error)).rstrip())
        if BLOCK in values:
            columns[BLOCK] = values.pop(BLOCK)
        return self._render(columns, values)


def _safe(value: Any) -> Any:
    """A value without the secrets of the URLs in it."""
    return safe_message(value) if isinstance(value, str) and "://" in value else value


def _error(exc_info: Any) -> Any:
    """The type, value and traceback that structlog's ``exc_info`` stands for."""
    if isinstance(exc_info, BaseException):
        return type(exc_info), exc_info, exc_info.__traceback__
    return exc_info if isinstance(exc_info, tuple) else sys.exc_info() if exc_info else None


def _time(seconds: float, date_format: str | None) -> str:
    time = datetime.fromtimestamp(seconds, UTC)
    if date_format is None:
        return time.isoformat(timespec="milliseconds")
    return time.astimezone().strftime(date_format)


def _render_text(columns: dict[str, Any], values: dict[str, Any]) -> str:
    requests = current_requests()
    line = "{time} {level} {process} {logger}".format_map(columns)
    if requests:
        line = f"{line} [{_ids(requests)}]"
    shown = "".join([f" {key}={_on_one_line(repr(value))}" for key, value in values.items()])
    line = f"{line}: {_on_one_line(columns['event'])}{shown}"
    blocks = [text for text in (columns.get("exception"), columns.get(BLOCK)) if text]
    # Indented, so that no line of an error's text can pass for a record.
    return "\n    ".join((line, *(each for text in blocks for each in _lines(text)))) if blocks else line


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else repr(text)


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield line if line.isprintable() else repr(line)[1:-1]


def _ids(requests: tuple[RequestIds, ...]) -> str:
    shown = ", ".join(
        own if of_caller is None else f"{own} {of_caller}" for own, of_caller in requests[:SHOWN_REQUESTS]
    )
    more = len(requests) - SHOWN_REQUESTS
    return shown if more <= 0 else f"{shown} and {more} more"


def _render_json(columns: dict[str, Any], values: dict[str, Any]) -> str:
    requests = current_requests()
    if len(requests) == 1:
        columns["request_id"], of_caller = requests[0]
        if of_caller is not None:
            columns["global_request_id"] = of_caller
    elif requests:
        columns["request_ids"] = [own for own, _ in requests]
    values = {**values, **columns}
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
