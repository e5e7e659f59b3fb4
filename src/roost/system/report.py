"""The report of a process that runs a whole system."""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec
from oslo_config import cfg

from roost.conductor.options import GROUP as CONDUCTOR
from roost.conductor.options import OPTIONS as CONDUCTOR_OPTIONS
from roost.ledger.retention import GROUP as LEDGER
from roost.ledger.retention import OPTIONS as LEDGER_OPTIONS
from roost.logs.options import OPTIONS as LOG_OPTIONS
from roost.records.options import GROUP as RECORDS
from roost.records.options import OPTIONS as RECORD_OPTIONS
from roost.report import Report, masked_options
from roost.scheduler.options import all_options as scheduler_options
from roost.system.system import System
from roost.tracing.options import GROUP as TRACING
from roost.tracing.options import OPTIONS as TRACING_OPTIONS
from roost.web.health import GROUP as HEALTHCHECK
from roost.web.health import OPTIONS as HEALTH_OPTIONS

_GROUPS: Mapping[str, Sequence[cfg.Opt]] = {
    "DEFAULT": LOG_OPTIONS,
    CONDUCTOR: CONDUCTOR_OPTIONS,
    LEDGER: LEDGER_OPTIONS,
    HEALTHCHECK: HEALTH_OPTIONS,
    RECORDS: RECORD_OPTIONS,
    TRACING: TRACING_OPTIONS,
}


def report_of(system: System, conf: cfg.ConfigOpts) -> Report:
    """The report of the process that runs this system in the running event loop."""

    def describe() -> Mapping[str, object]:
        return {
            "directory": str(system.directory),
            "cells": sorted(system.cells),
            "hosts": system.layout.hosts,
            **msgspec.structs.asdict(system.ledger.status()),
        }

    def options() -> Mapping[str, object]:
        of_scheduler = scheduler_options()
        for group, each in of_scheduler.items():
            conf.register_opts(each, group=group)
        return masked_options(conf, {**_GROUPS, **of_scheduler})

    return Report(asyncio.get_running_loop(), options, {"system": describe})
