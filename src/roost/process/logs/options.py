"""The options of logging, in group ``DEFAULT``, under the names of oslo.log."""

import logging
import logging.handlers
import os
import time
from pathlib import Path

from oslo_config import cfg

from roost.process.logs.configuration import LogOptions

FILE_IN_FOLDER = "roost.log"
"""The name of the file if only its folder is given."""

_FACILITIES = sorted(logging.handlers.SysLogHandler.facility_names)

OPTIONS = [
    cfg.BoolOpt("debug", default=False, help="All messages are logged, not only warnings and errors."),
    cfg.ListOpt(
        "default_log_levels",
        default=[],
        help="The levels of loggers, as in roost.ledger=DEBUG. They have precedence over debug. Of libraries "
        "that are not in the list only warnings and errors are logged.",
    ),
    cfg.BoolOpt("access_log", default=False, help="The logger roost.access writes a line for each request."),
    cfg.BoolOpt("use_json", default=False, help="Lines are JSON in place of text."),
    cfg.StrOpt(
        "log_date_format",
        help="The format of the local time in lines, for strftime. Without it the time is in UTC, with "
        "milliseconds, by ISO 8601.",
    ),
    cfg.StrOpt(
        "log_file",
        deprecated_name="logfile",
        help="Lines go to this file, which is opened anew after a program such as logrotate has moved it.",
    ),
    cfg.StrOpt(
        "log_dir",
        deprecated_name="logdir",
        help=f"The folder of log_file, and of the file {FILE_IN_FOLDER} if log_file is not set.",
    ),
    cfg.BoolOpt(
        "use_stderr",
        default=False,
        help="Lines go to standard error too. They do in any case if they go nowhere else.",
    ),
    cfg.BoolOpt("use_syslog", default=False, help="Lines go to syslog, by the socket /dev/log."),
    cfg.StrOpt(
        "syslog_log_facility",
        default="LOG_USER",
        help=f"The facility of syslog: {', '.join(_FACILITIES)}, also in capitals and after LOG_.",
    ),
]


def log_options_from(conf: cfg.ConfigOpts) -> LogOptions:
    """Return the options of logging from a configuration where they are registered.

    Raises:
        ValueError: A level, the facility or the format of the time is not valid.
        cfg.Error: A value has not the type of its option.
    """
    facility = conf.syslog_log_facility.lower().removeprefix("log_")
    if facility not in _FACILITIES:
        raise ValueError(
            f"syslog_log_facility {conf.syslog_log_facility!r} is none of {', '.join(_FACILITIES)}"
        )
    date_format = conf.log_date_format or None
    if date_format is not None and not time.strftime(date_format).isprintable():
        raise ValueError(f"log_date_format {date_format!r} has characters that cannot be printed")
    return LogOptions(
        debug=conf.debug,
        levels=tuple(map(_level, conf.default_log_levels)),
        file=_file(conf.log_file, conf.log_dir),
        stderr=conf.use_stderr,
        syslog_facility=facility if conf.use_syslog else None,
        as_json=conf.use_json,
        date_format=date_format,
        access=conf.access_log,
    )


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


def _file(file: str | None, folder: str | None) -> str | None:
    if not folder:
        return file or None
    return os.fspath(Path(folder) / (file or FILE_IN_FOLDER))
