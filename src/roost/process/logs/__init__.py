"""Logging of all processes: options, one format for all loggers, and the ids of requests in each line.

Modules of Roost log with ``structlog.get_logger()``: a constant text, the event, and values by key. Libraries
log with the standard library. `configure_logs` sends the records of both to the same handlers.

configuration  the handlers, levels and formats of a process, and the access lines
options        the options of logging, named as oslo.log names them
format         one line for each record, as text or as JSON
request_ids    the ids of the requests that the current task works for
outages        a line at the beginning and the end of an outage, and one a minute in between
"""

from roost.process.logs.configuration import (
    ACCESS_LOGGER,
    collected_messages,
    configure_logs,
    logging_config,
    silence,
)
from roost.process.logs.options import LogOptions
from roost.process.logs.request_ids import RequestIds, current_requests, new_request_ids, serving

__all__ = [
    "ACCESS_LOGGER",
    "LogOptions",
    "RequestIds",
    "collected_messages",
    "configure_logs",
    "current_requests",
    "logging_config",
    "new_request_ids",
    "serving",
    "silence",
]
