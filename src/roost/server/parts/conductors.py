"""The conductors: of cells, and the super conductor with its aggregates and its API."""

from roost.conductor import http
from roost.conductor.aggregates.host_aggregates import HostAggregates
from roost.conductor.aggregates.mirror import AggregateMirror
from roost.conductor.cell_conductor import CellConductor
from roost.conductor.maintenance.hook_calls import open_hook
from roost.conductor.neighbours import Neighbours
from roost.conductor.super_conductor import SuperConductor
from roost.conductor.words.words import Words
from roost.placement.access import open_authenticator
from roost.process.metrics import catalogue as metrics
from roost.server.options import ConductingOptions
from roost.server.process import Api, Process, ProcessPart
from roost.state.api_database.aggregates.store import AggregateStore
from roost.state.api_database.request_reads import Requests
from roost.state.api_database.server_groups import ServerGroups
from roost.web.auth.rules import PolicyRules


class CellConductorsPart(ProcessPart[ConductingOptions]):
    """The conductors of the cells that this process conducts."""

    async def open(self, process: Process[ConductingOptions]) -> None:
        for cell in process.conducted:
            conductor = CellConductor(
                cell,
                process.placement,
                process.scheduler,
                process.records,
                limits=process.options.time_limits,
                move_limits=process.options.move_limits,
                alone=process.owns(cell.database),
                # cell0, and the cells of `roost up`, are written to by the processes that conduct them.
                wakes=process.options.wakes if "cell" in process.parts else None,
                clock=process.clock,
            )
            process.stack.push_async_callback(conductor.close)
            process.run_for_ever(f"conductor of {cell.name}", conductor.run())


class AggregatesPart(ProcessPart[ConductingOptions]):
    """The host aggregates, and the mirror of their members in placement."""

    async def open(self, process: Process[ConductingOptions]) -> None:
        assert process.api is not None
        words = Words(process.api, process.cells, process.placement, process.clock)
        store = AggregateStore(process.api, process.clock)
        process.aggregates = aggregates = HostAggregates(
            store, process.cells.values(), process.placement, words
        )
        process.mirror = AggregateMirror(store, process.placement, aggregates.nodes, aggregates.changed)


class SuperConductorPart(ProcessPart[ConductingOptions]):
    """The super conductor, which resumes what an earlier process left unfinished."""

    def check(self, options: ConductingOptions) -> None:
        options.maintenances.check()

    async def open(self, process: Process[ConductingOptions]) -> None:
        options, api, cells = process.options, process.api, process.cells
        assert api is not None
        process.run_for_ever("aggregates", process.mirror.run())
        words = process.aggregates.words
        process.super_conductor = conductor = SuperConductor(
            api,
            process.scheduler,
            process.placement,
            cells,
            records=process.records,
            max_attempts=options.max_attempts,
            history_days=options.time_limits.history_days,
            audits=options.audits,
            move_limits=options.move_limits,
            evacuations=options.evacuations,
            words=words,
            hook=open_hook(options.maintenances),
            maintenances=options.maintenances,
            clock=process.clock,
        )
        process.stack.push_async_callback(conductor.close)
        words.follow(conductor.watch)
        process.run_for_ever("words", words.mirror.run())
        await conductor.begin(alone=process.owns(api))
        await conductor.resume()
        process.requests, process.groups = Requests(api), ServerGroups(api)
        metrics.BUILD_REQUESTS.follow(lambda: conductor.in_progress)
        process.sections["conductor"] = lambda: {
            "requests": conductor.in_progress,
            "cells": {name: str(cell.database) for name, cell in cells.items()},
        }


class ConductorApiPart(ProcessPart[ConductingOptions]):
    """The API of instances, hosts, aggregates and groups."""

    def check(self, options: ConductingOptions) -> None:
        _rules(options)

    async def open(self, process: Process[ConductingOptions]) -> None:
        options = process.options
        neighbours = Neighbours.configured(options.source)
        process.stack.push_async_callback(neighbours.close)
        application = http.create_app(
            process.super_conductor,
            process.requests,
            process.aggregates,
            process.groups,
            process.placement,
            open_authenticator(options),
            _rules(options),
            options,
            records=process.records,
            neighbours=neighbours,
            documented="placement_api" not in process.parts,
        )
        process.apis.append(Api(application, http.PATHS, http.OPERATIONS))


def _rules(options: ConductingOptions) -> PolicyRules:
    return PolicyRules(http.default_rules(), options.source, options.enforce_new_defaults)
