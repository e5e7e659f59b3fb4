"""The options of logging, in group ``DEFAULT``, under the names of oslo.log."""

import logging
import logging.handlers
import os
import time
from collections.abc import Sequence
from pathlib import Path

from roost.process.options import DEFAULT_GROUP, OptionStruct, option

FILE_IN_FOLDER = "roost.log"
"""The name of the file if only its folder is given."""

_FACILITIES = sorted(logging.handlers.SysLogHandler.facility_names)


def _levels(texts: Sequence[str]) -> tuple[tuple[str, int], ...]:
    return tuple(map(_level, texts))


def _level(text: str) -> tuple[str, int]:
    name, _, level = (part.strip() for part in text.partition("="))
    if level.isdecimal():
        return name, int(level)
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None or not name:
        raise ValueError(
            f"default_log_levels has {text!r}, which is not LOGGER=LEVEL with a level such as INFO"
        )
    return name, number


def _date_format(text: str | None) -> str | None:
    if text and not time.strftime(text).isprintable():
        raise ValueError(f"log_date_format {text!r} has characters that cannot be printed")
    return text or None


def _facility(text: str) -> str:
    facility = text.lower().removeprefix("log_")
    if facility not in _FACILITIES:
        raise ValueError(f"syslog_log_facility {text!r} is none of {', '.join(_FACILITIES)}")
    return facility


class LogOptions(OptionStruct, frozen=True, group=DEFAULT_GROUP):
    """The options of logging of one process. ``levels``: pairs of a logger and its level."""

    debug: bool = option(False, help="All messages are logged, not only warnings and errors.")
    levels: tuple[tuple[str, int], ...] = option(
        (),
        name="default_log_levels",
        parse=_levels,
        help="The levels of loggers, as in roost.ledger=DEBUG. They have precedence over debug. Of libraries "
        "that are not in the list only warnings and errors are logged.",
    )
    access: bool = option(
        False, name="access_log", help="The logger roost.access writes a line for each request."
    )
    as_json: bool = option(False, name="use_json", help="Lines are JSON in place of text.")
    date_format: str | None = option(
        None,
        name="log_date_format",
        parse=_date_format,
        help="The format of the local time in lines, for strftime. Without it the time is in UTC, with "
        "milliseconds, by ISO 8601.",
    )
    log_file: str | None = option(
        None,
        deprecated_name="logfile",
        help="Lines go to this file, which is opened anew after a program such as logrotate has moved it.",
    )
    log_dir: str | None = option(
        None,
        deprecated_name="logdir",
        help=f"The folder of log_file, and of the file {FILE_IN_FOLDER} if log_file is not set.",
    )
    stderr: bool = option(
        False,
        name="use_stderr",
        help="Lines go to standard error too. They do in any case if they go nowhere else.",
    )
    use_syslog: bool = option(False, help="Lines go to syslog, by the socket /dev/log.")
    syslog_log_facility: str = option(
        "LOG_USER",
        parse=_facility,
        help=f"The facility of syslog: {', '.join(_FACILITIES)}, also in capitals and after LOG_.",
    )

    @property
    def file(self) -> str | None:
        """The path of the file; None: no file."""
        if not self.log_dir:
            return self.log_file or None
        return os.fspath(Path(self.log_dir) / (self.log_file or FILE_IN_FOLDER))

    @property
    def syslog_facility(self) -> str | None:
        """The facility of syslog, such as ``daemon``; None: not to syslog."""
        return self.syslog_log_facility if self.use_syslog else None
