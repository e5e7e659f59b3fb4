"""The report of a process that runs a whole system."""

import asyncio
from collections.abc import Mapping
from functools import partial

import msgspec

from roost.process.report import ProcessReport
from roost.server.all_in_one.system import System
from roost.server.conductor.options import shown_options


def report_of(system: System) -> ProcessReport:
    """Return the report of the process that runs this system in the running event loop."""

    def describe() -> Mapping[str, object]:
        return {
            "directory": str(system.directory),
            "cells": {name: str(cell.database) for name, cell in sorted(system.cells.items())},
            "hosts": system.layout.hosts,
            **msgspec.structs.asdict(system.ledger.status()),
        }

    options = partial(shown_options, system.options)
    return ProcessReport(asyncio.get_running_loop(), options, {"system": describe})
