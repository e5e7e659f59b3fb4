"""The access lines, one for each request."""

import logging
from collections.abc import Callable
from typing import Any

from roost.process.logs.configuration import ACCESS_LOGGER
from roost.process.logs.format import MARK


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
