"""The endpoint of a cell's agents: the service that they call, and its API."""

from msgspec.structs import replace

from roost.agent.protocol.wire import POLL
from roost.conductor.agent_endpoint.endpoint import EndpointTimes
from roost.conductor.agent_endpoint.http import create_app, default_rules
from roost.conductor.agent_endpoint.service import AgentService
from roost.conductor.agent_endpoint.tokens import HostTokens
from roost.server.options import ConductingOptions
from roost.server.process import Api, Process, ProcessPart
from roost.state.cell_database import Cell
from roost.web.auth.rules import PolicyRules


class AgentsApiPart(ProcessPart[ConductingOptions]):
    """The endpoint of the agents of the cell that this process conducts."""

    def check(self, options: ConductingOptions) -> None:
        _rules(options)

    async def open(self, process: Process[ConductingOptions]) -> None:
        [cell] = process.conducted
        application = create_app(open_agents(process, cell), HostTokens(cell), _rules(process.options))
        process.apis.append(Api(application, long_polls=(POLL,)))


def open_agents(
    process: Process[ConductingOptions], cell: Cell, poll_seconds: float | None = None
) -> AgentService:
    """Open the service that the agents of a cell call. ``poll_seconds``: the longest wait of a poll."""
    options = process.options
    times = EndpointTimes(build=options.time_limits.build_seconds)
    if poll_seconds is not None:
        times = replace(times, poll=poll_seconds)
    agents = AgentService(
        cell,
        process.placement,
        process.records,
        sharing=options.sharing_providers,
        api=process.api,
        limits=options.offers,
        times=times,
        clock=process.clock,
    )
    process.run_for_ever(f"agents of {cell.name}", agents.run())
    return agents


def _rules(options: ConductingOptions) -> PolicyRules:
    return PolicyRules(default_rules(), options.source, options.enforce_new_defaults)
