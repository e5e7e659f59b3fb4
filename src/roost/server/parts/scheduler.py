"""The scheduler: its hosts, the scheduler itself, in this process or over HTTP, and its API."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from roost.ledger.capacity_metrics import CapacityMetrics
from roost.placement.access import open_authenticator
from roost.scheduler import Scheduler
from roost.scheduler.api.app import create_app, default_rules
from roost.scheduler.api.host_judge import HostJudge
from roost.scheduler.api.kept_answers import SchedulerAnswers
from roost.scheduler.api.operations import OPERATIONS, PATHS
from roost.scheduler.api.service import SchedulerService
from roost.scheduler.candidates.reported_gateway import ReportedGateway
from roost.scheduler.candidates.source_choice import SwitchingGateway
from roost.scheduler.explain.resident_reader import ResidentReader
from roost.scheduler.gateways import Gateway
from roost.scheduler.gateways.foreign_groups import no_members
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.gateways.unclaimed import (
    HttpUnclaimedGateway,
    JudgingPools,
    LocalUnclaimedGateway,
    ReadPlacement,
)
from roost.scheduler.gateways.word_checks import UnconditionalGateway, WordCheckedGateway
from roost.scheduler.nodes.feed import NodeFeed
from roost.scheduler.nodes.hosts import ServiceHosts
from roost.scheduler.nodes.roots import HttpRoots, LedgerRoots, RootSource
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.nodes.zones import zones
from roost.scheduler.selection.host_pools import HostPools
from roost.server.options import SchedulingOptions
from roost.server.parts.placement import describe_ledger, prepare_feasibility
from roost.server.process import Api, Process, ProcessPart
from roost.state.api_database.operator_words import WordStore
from roost.state.api_database.server_groups import ServerGroups
from roost.web.auth.rules import PolicyRules
from roost.web.health import HealthCheck


class HostsPart(ProcessPart[SchedulingOptions]):
    """The hosts of a scheduler in this process, and the metrics of their capacity.

    With an API database they are the nodes of the cells, which the feed keeps up to date and writes to the
    node journal, unless the process only reads.
    """

    async def open(self, process: Process[SchedulingOptions]) -> None:
        options = process.options
        if not options.decides:
            return
        table, feed = NodeTable(), None
        if process.api is not None:
            feed = NodeFeed(
                process.cells.values(),
                table,
                journal=None if process.only_reads else process.api,
                source=WordStore(process.api),
                retention=options.retention,
                down_seconds=options.scheduler.service_down_time,
                clock=process.clock,
            )
            process.stack.push_async_callback(feed.close)
            process.words = feed.words
        process.hosts = hosts = ServiceHosts(table, feed, _roots(process))
        await hosts.refresh_all()
        process.run_for_ever("hosts", hosts.run())
        if process.ledger is not None:
            of_hosts = partial(zones, table, options.scheduler.default_availability_zone)
            process.run_for_ever("capacity", CapacityMetrics(process.ledger, of_hosts).run())

    def readiness(self, process: Process[SchedulingOptions]) -> Sequence[HealthCheck]:
        hosts = process.hosts
        assert hosts is not None
        return (HealthCheck("hosts", judge=lambda _: _verdict(hosts)),)


class SchedulerPart(ProcessPart[SchedulingOptions]):
    """A scheduler on the hosts of this process, or a scheduler service over HTTP."""

    def check(self, options: SchedulingOptions) -> None:
        if not options.decides:
            # Imported only here: a process that decides does not need it.
            from roost.scheduler.client import HttpScheduler

            HttpScheduler.configured(options.source)

    async def open(self, process: Process[SchedulingOptions]) -> None:
        options = process.options
        if not options.decides:
            from roost.scheduler.client import HttpScheduler

            service = HttpScheduler.configured(options.source)
            process.scheduler = await process.stack.enter_async_context(service)
            return
        assert process.hosts is not None
        pools = HostPools(process.hosts.table, options.scheduler)
        deciding = SwitchingGateway(_gateway(process, pools), _checked(process, ReportedGateway(pools)))
        process.scheduler = Scheduler(
            process.around(deciding),
            process.records,
            process.clock,
            seeds=process.seeds,
            words=process.words,
        )


class SchedulerApiPart(ProcessPart[SchedulingOptions]):
    """The API of the scheduler of this process: destinations, alternates, records and reasons."""

    def check(self, options: SchedulingOptions) -> None:
        _rules(options)

    async def open(self, process: Process[SchedulingOptions]) -> None:
        options, hosts, ledger = process.options, process.hosts, process.ledger
        assert isinstance(process.scheduler, Scheduler) and hosts is not None
        answers = SchedulerAnswers(process.api)
        process.stack.push_async_callback(answers.close)
        service = SchedulerService(
            process.scheduler,
            process.records,
            options.scheduler,
            ledger,
            hosts.refresh,
            placement=process.placement,
            judge=await _judge(process, hosts.table),
            queries=process.queries,
        )
        application = create_app(
            service,
            open_authenticator(options),
            _rules(options),
            options,
            answers=answers,
            documented="placement_api" not in process.parts,
        )
        process.apis.append(Api(application, PATHS, OPERATIONS))

        def describe() -> dict[str, object]:
            found: dict[str, object] = {"hosts": len(hosts.table), "node_version": hosts.table.version}
            return found if ledger is None else {**found, **describe_ledger(ledger)}

        process.sections["scheduler"] = describe


def _roots(process: Process[SchedulingOptions]) -> RootSource | None:
    """Return the source of hosts that nobody reports for, if they are hosts."""
    seconds = process.options.placement_hosts_seconds
    if not process.options.hosts_from_placement:
        return None
    if process.ledger is not None:
        return LedgerRoots(process.ledger, seconds)
    assert process.http_placement is not None
    return HttpRoots(process.http_placement, seconds)


def _gateway(process: Process[SchedulingOptions], pools: HostPools) -> Gateway:
    if process.ledger is not None:
        prepare_feasibility(process.ledger)
        residents = None
        if process.api is not None and "cells" in process.parts:
            residents = ResidentReader(process.ledger, pools.table, process.cells.values())
        return LocalGateway(process.ledger, pools, residents)
    assert process.http_placement is not None
    members = process.members
    if members is None:
        members = no_members if process.api is None else ServerGroups(process.api).consumers
    return _checked(process, HttpGateway(process.http_placement, pools, members))


async def unclaimed_gateway(process: Process[Any], pools: JudgingPools) -> Gateway:
    """Open a gateway that decides without a claim, on the ledger of the process or over HTTP."""
    if process.ledger is not None:
        return LocalUnclaimedGateway(process.ledger, pools)
    placement = await process.stack.enter_async_context(ReadPlacement.configured(process.options.source))
    return HttpUnclaimedGateway(placement, pools)


async def _judge(process: Process[SchedulingOptions], table: NodeTable) -> HostJudge:
    pools = JudgingPools(table, process.options.scheduler)
    return HostJudge(await unclaimed_gateway(process, pools), pools, process.clock, process.words)


def _checked(process: Process[SchedulingOptions], gateway: UnconditionalGateway) -> Gateway:
    if process.words is None:
        return gateway
    return WordCheckedGateway(gateway, process.words, only_before=process.words_before_runs)


def _rules(options: SchedulingOptions) -> PolicyRules:
    return PolicyRules(default_rules(), options.source, options.enforce_new_defaults)


def _verdict(hosts: ServiceHosts) -> str | None:
    return None if hosts.failure is None else "the hosts of placement cannot be read; the log has the error"
