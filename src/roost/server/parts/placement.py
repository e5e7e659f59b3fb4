"""Placement: a ledger in this process or a service over HTTP, and the API that serves a ledger."""

from collections.abc import Sequence

import msgspec

from roost.fleet.feasibility import feasibilities
from roost.ledger import Ledger
from roost.ledger.capacity_metrics import CapacityMetrics
from roost.ledger.retention import keep_trimming
from roost.placement.access import open_policy
from roost.placement.http.app import create_app, document_at
from roost.placement.options import PlacementOptions
from roost.placement.queries import QueryBudget
from roost.placement.readiness import ledger_checks
from roost.placement.service import PlacementService
from roost.placement.v1.app import V1
from roost.process.option_source import Source
from roost.server.process import Api, Process, ProcessPart, prepare_database
from roost.web.health import HealthCheck, NoAnswer
from roost.web.health_operations import DOCUMENTED


class PlacementPart(ProcessPart[PlacementOptions]):
    """The ledger of ``[placement_database]``; without one, a placement service over HTTP."""

    def check(self, options: PlacementOptions) -> None:
        if options.database is None:
            # Imported only here: a process with a ledger does not need it.
            from roost.placement.client import HttpPlacement

            HttpPlacement.configured(options.source or Source())

    def prepare(self, options: PlacementOptions) -> None:
        if options.database is not None:
            prepare_database(options.database, options.upgrade_database)

    async def open(self, process: Process[PlacementOptions]) -> None:
        options = process.options
        if options.database is None:
            from roost.placement.client import HttpPlacement

            service = HttpPlacement.configured(options.source or Source())
            process.placement = process.http_placement = await process.stack.enter_async_context(service)
            return
        process.ledger = await Ledger.open(process.open_database(options.database), process.clock)
        process.stack.push_async_callback(process.ledger.close)
        process.placement = PlacementService(process.ledger)
        process.queries = QueryBudget(process.ledger, options.limits)

    def readiness(self, process: Process[PlacementOptions]) -> Sequence[HealthCheck]:
        if process.ledger is not None:
            return ledger_checks(process.ledger, process.options.health)
        assert process.http_placement is not None
        return (HealthCheck("placement", process.http_placement.root, _verdict),)


class TrimmingPart(ProcessPart[PlacementOptions]):
    """Removes old commits of the ledger periodically."""

    async def open(self, process: Process[PlacementOptions]) -> None:
        assert process.ledger is not None
        process.run_beside(keep_trimming(process.ledger, process.options.retention, process.clock))


class PlacementApiPart(ProcessPart[PlacementOptions]):
    """The Placement API of the ledger, and ``/v1``, whose document has the operations of all APIs."""

    def check(self, options: PlacementOptions) -> None:
        open_policy(options)

    async def open(self, process: Process[PlacementOptions]) -> None:
        ledger, options, queries = process.ledger, process.options, process.queries
        assert ledger is not None and queries is not None
        prepare_feasibility(ledger)
        operations = [operation for api in process.apis for operation in api.operations]
        v1 = V1(ledger, options, queries, document_at, (*operations, *DOCUMENTED))
        process.stack.callback(v1.close)
        process.stops.append(v1.close)
        process.apis += (
            Api(v1, ("/v1",), long_polls=("/v1/changes",)),
            Api(create_app(ledger, options, queries)),
        )
        process.sections["ledger"] = lambda: describe_ledger(ledger)
        if "hosts" not in process.parts:
            process.run_beside(CapacityMetrics(ledger).run(), "capacity")


def prepare_feasibility(ledger: Ledger) -> None:
    """Number the trees of a ledger now, not in the first request.

    It takes half a second for thousands of devices.
    """
    fleet = ledger.known()
    if fleet.has_trees:
        feasibilities(fleet).prepare()


def describe_ledger(ledger: Ledger) -> dict[str, object]:
    """Return the state of a ledger, for the report of a process."""
    return {"database": str(ledger.database), **msgspec.structs.asdict(ledger.status())}


def _verdict(failure: Exception | None) -> str | None:
    if failure is None:
        return None
    if isinstance(failure, NoAnswer):
        return str(failure)
    return "it does not answer as a placement service; the log has the error"
