"""Options and output that several commands share."""

import logging
import sys

import click
import structlog

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def log_to_stderr(level: int = logging.WARNING) -> None:
    """Send log lines of ``level`` and above to standard error, which keeps standard output for results."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            # Plain tracebacks: values of local variables may hold what users sent.
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
