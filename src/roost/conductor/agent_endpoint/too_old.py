"""Builds that need a feature which the agent of their host lacks, because it is of an earlier version.

A request that needs a feature is accepted once all processes know it (`roost.conductor.hosts.features`).
If an agent without it comes back afterwards, the attempt ends, and the next alternate is tried.
"""

from roost.model.instance import ASSIGNED, BuildResult, Instance
from roost.process.context import Context
from roost.state.cell_database.building import ReportResults
from roost.state.cell_database.host_work import HostWork

AGENT_TOO_OLD = "AgentTooOld"
"""The code of an attempt that ends because the agent of its host is too old."""


async def work_for(context: Context, database: str, cell: str, work: HostWork, version: int) -> HostWork:
    """Return the work of a host that its agent of a service version can do; end the attempts of the rest.

    Raises `StorageError`.
    """
    late = {each.uuid: needed for each in work.instances if (needed := _needed(each)) > version}
    if not late:
        return work
    host = next(each.host for each in work.instances if each.uuid in late) or ""
    results = tuple(
        BuildResult(
            each.uuid,
            host,
            each.attempt,
            f"the agent of host {host} has service version {version}, and this needs {late[each.uuid]}",
            AGENT_TOO_OLD,
        )
        for each in work.instances
        if each.uuid in late
    )
    at = context.clock()
    ended = await context.write(database, ReportResults(results, at, cell))
    if ended:
        context.record((), ended)
    values = {"cell": cell, "host": host, "service_version": version, "instances": len(late)}
    context.log("an agent is too old for what it is to build", values, "warning")
    return HostWork([each for each in work.instances if each.uuid not in late], work.orders)


def _needed(instance: Instance) -> int:
    """Return the version that an instance needs, as long as the agent has not begun to start it."""
    if instance.state != ASSIGNED or instance.spec is None:
        return 0
    return instance.spec.needs_version
