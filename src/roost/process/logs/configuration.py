"""The configuration of logging: the handlers of log records, and their lowest levels."""

import logging
import logging.config
import logging.handlers
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import structlog

from roost.model.errors import OperatorError
from roost.process.logs.format import MARK, LineFormatter
from roost.process.logs.options import LogOptions

ACCESS_LOGGER = "roost.access"
"""The logger of the access lines."""

REPORT_LOGGER = "roost.process.report"
"""The logger of the reports that an operator requests by a signal. They are written at every level."""

QUIET = (
    "aiohttp", "alembic", "amqp", "asyncio", "dogpile", "hpack", "httpcore", "httpx", "keystoneauth",
    "keystonemiddleware", "kombu", "oslo.messaging", "oslo_messaging", "oslo_policy", "oslo_service",
    "sqlalchemy", "stevedore", "urllib3",
)  # fmt: skip
"""Libraries whose records are logged only from warnings on, unless the options say otherwise."""

_ERRORS_ONLY = ("oslo_config", "psycopg")
"""Libraries of which only errors are logged, unless the options say otherwise.

oslo.config warns that an option is deprecated if it is read from the group where upstream has it.

psycopg warns of each pipeline that an error has ended. The error itself is raised, and is logged or answered.
Most often another process has committed first, which happens hundreds of times an hour.
"""

_SILENT = ("sushy",)
"""Libraries of which nothing is logged, unless the options say otherwise.

sushy logs each request that fails. It raises the error as well, and Roost logs the failure of a BMC once.
"""

_SYSLOG = "/dev/log"
_FLOORS = {"httpcore": logging.INFO, "hpack": logging.INFO}
"""Lowest levels of loggers that would write tokens below them."""


class _Syslog(logging.handlers.SysLogHandler):
    """Sends lines to syslog, with the program's name in front, by which syslog files them."""

    ident = "roost: "


def configure_logs(options: LogOptions | None = None) -> None:
    """Send all log records where the options say. Each process calls this at its start.

    Raises:
        OperatorError: The file or syslog cannot be opened.
    """
    options = options or LogOptions()
    # The standard library's handler would report every single line instead.
    if options.syslog_facility is not None and not Path(_SYSLOG).is_socket():
        raise OperatorError(f"use_syslog: there is no socket {_SYSLOG}")
    try:
        logging.config.dictConfig(logging_config(options))
    except ValueError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        reason = error.__cause__.strerror
        raise OperatorError(f"log file {options.file} cannot be opened: {reason}") from error
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    logging.captureWarnings(True)
    # No line shows these, and finding them out for each record takes time.
    logging.logThreads = logging.logMultiprocessing = False


def logging_config(options: LogOptions | None = None) -> dict[str, Any]:
    """Return the standard library's logging configuration, for servers that apply it themselves."""
    options = options or LogOptions()
    handlers = _handlers(options)
    levels = dict.fromkeys(QUIET, logging.WARNING) | dict.fromkeys(_ERRORS_ONLY, logging.ERROR)
    levels |= dict.fromkeys(_SILENT, logging.CRITICAL)
    levels |= dict(options.levels)
    levels |= {name: max(floor, levels[name]) for name, floor in _FLOORS.items()}
    levels[ACCESS_LOGGER] = logging.INFO if options.access else logging.CRITICAL
    levels[REPORT_LOGGER] = logging.INFO
    form = {"()": LineFormatter, "as_json": options.as_json, "date_format": options.date_format}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": form},
        "handlers": {name: {**handler, "formatter": "line"} for name, handler in handlers.items()},
        "loggers": {name: {"level": level} for name, level in levels.items()},
        "root": {"handlers": list(handlers), "level": logging.DEBUG if options.debug else logging.WARNING},
    }


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


def _handlers(options: LogOptions) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    if options.file is not None:
        # It opens the file anew when a program such as logrotate has moved it. All processes append to it.
        found["file"] = {
            "class": "logging.handlers.WatchedFileHandler",
            "filename": options.file,
            "encoding": "utf-8",
            "errors": "backslashreplace",
        }
    if options.syslog_facility is not None:
        found["syslog"] = {
            "()": _Syslog,
            "address": _SYSLOG,
            "facility": options.syslog_facility,
        }
    if options.stderr or not found:
        found["stderr"] = {"class": "logging.StreamHandler", "stream": "ext://sys.stderr"}
    return found


def make_access_log() -> Callable[[dict[str, Any]], None]:
    """Return a function that logs one request; its argument has the values of the line.

    It makes the record by itself: structlog and the standard library's logger would look for the line of code
    that logs, which costs as much as the rest of the line.
    """
    logger = logging.getLogger(ACCESS_LOGGER)

    def log(values: dict[str, Any]) -> None:
        record = logging.LogRecord(
            ACCESS_LOGGER, logging.INFO, "", 0, {"event": "request", **values}, None, None
        )
        setattr(record, MARK, "info")
        logger.handle(record)

    return log
