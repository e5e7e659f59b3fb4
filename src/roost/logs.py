"""Logging of a Roost process: one format for structlog's loggers and for those of the standard library.

Modules of Roost log with ``structlog.get_logger()``: a constant text, the event, and values by key. Libraries
log with the standard library. All records reach the root logger's handler, which writes one line for each
to standard error, ``TIME LEVEL PROCESS LOGGER: EVENT KEY=VALUE ...``::

    2026-01-31T12:00:00.000+00:00 warning 4711 roost.system.system: will trim later error='database is locked'

A traceback follows its line. It shows no values of local variables, because requests may hold secrets.
"""

import logging
import logging.config
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import structlog
from structlog.typing import EventDict

DEFAULT_LEVEL = "WARNING"

_COLUMNS = ("time", "level", "process", "logger", "event")


def configure_logs(level: str = DEFAULT_LEVEL) -> None:
    """Send all log records of ``level`` and above to standard error. Each process calls this at its start."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    logging.captureWarnings(True)
    logging.config.dictConfig(logging_config(level))


def logging_config(level: str = DEFAULT_LEVEL) -> dict[str, Any]:
    """Return the standard library's logging configuration, for servers that apply it themselves."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": make_formatter}},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}
        },
        "loggers": {},
        "root": {"handlers": ["stderr"], "level": level},
    }


def make_formatter() -> logging.Formatter:
    """Return the formatter of all log records."""
    return structlog.stdlib.ProcessorFormatter(
        processors=[
            _add_columns,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            _render_line,
        ]
    )


def silence(logger: str) -> None:
    """Drop all further records of a library's logger in this process."""
    logging.getLogger(logger).disabled = True


@contextmanager
def collected_messages(logger: str) -> Iterator[list[str]]:
    """Collect the errors of a library's logger in a list instead of writing them, during the context.

    They are collected whatever level is set for the library.
    """
    messages: list[str] = []

    def collect(record: logging.LogRecord) -> bool:
        messages.append(record.getMessage())
        return False

    source = logging.getLogger(logger)
    level = source.level
    source.setLevel(logging.ERROR)
    source.addFilter(collect)
    try:
        yield messages
    finally:
        source.removeFilter(collect)
        source.setLevel(level)


def _add_columns(_logger: object, _method: str, event: EventDict) -> EventDict:
    record: logging.LogRecord = event["_record"]
    event["time"] = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    event["level"] = record.levelname.lower()
    event["process"] = record.process
    event["logger"] = record.name
    return event


def _render_line(_logger: object, _method: str, event: EventDict) -> str:
    time, level, process, logger, text = (event.pop(column) for column in _COLUMNS)
    traceback = event.pop("exception", None)
    values = "".join(f" {key}={value!r}" for key, value in event.items())
    # A record is one line, whatever its texts hold.
    shown = text if str(text).isprintable() else repr(text)
    line = f"{time} {level} {process} {logger}: {shown}{values}"
    return f"{line}\n{traceback}" if traceback else line
