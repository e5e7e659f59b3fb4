"""The parts of the bridge to Nova beside its calls: the audit of claims, and the ends of attempts."""

from roost.nova.attempts import NovaAttempts
from roost.nova.audit.rounds import NovaAudit, NovaAuditState, UnansweredRules, bridge_audit_tenure
from roost.process.asyncio_context import AsyncioContext
from roost.process.context import lasting
from roost.process.metrics import nova_bridge as metrics
from roost.server.nova_options import NovaSchedulerOptions
from roost.server.process import Process, ProcessPart
from roost.state.api_database.audit import LEASE
from roost.state.api_database.tables import API
from roost.state.leases import Tenure, keep_lease, release_lease, watch_leases
from roost.storage import Database, StorageError


class NovaAuditPart(ProcessPart[NovaSchedulerOptions]):
    """The audit of claims that nobody answered for. Of all bridges of a database one makes its rounds.

    None in shadow mode, which claims nothing.
    """

    async def open(self, process: Process[NovaSchedulerOptions]) -> None:
        options, bridge = process.options, process.options.bridge
        if not bridge.audit_seconds or options.is_shadow:
            return
        own, hosts = process.api, process.hosts
        assert own is not None and hosts is not None
        context = AsyncioContext(lambda _: own, clock=process.clock)
        tenure = bridge_audit_tenure(options.host)
        audit = NovaAudit(
            context,
            tenure,
            process.nova_cells,
            process.placement,
            hosts.table,
            process.records.backend,
            UnansweredRules(
                every=bridge.audit_seconds,
                frees=bridge.free_unanswered_claims,
                timeout=options.nova.long_rpc_timeout,
            ),
        )

        async def release() -> None:
            await _release(own, tenure)

        process.stack.push_async_callback(release)
        process.run_for_ever("keep_audit", keep_lease(context, API, tenure))
        process.run_for_ever("watch_audit", watch_leases(context, API, LEASE, tenure.times))
        process.run_for_ever("audit", lasting(context, "audit", audit.run))
        process.sections["audit"] = lambda: _described(audit.state)


class NovaAttemptsPart(ProcessPart[NovaSchedulerOptions]):
    """The ends of attempts, which Nova's databases tell; none in shadow mode, which claims nothing."""

    async def open(self, process: Process[NovaSchedulerOptions]) -> None:
        if process.options.is_shadow:
            return
        attempts = NovaAttempts(process.nova_cells, process.records, process.clock)
        context = AsyncioContext(lambda _: process.nova_cells.api, clock=process.clock)
        process.run_for_ever("attempts", lasting(context, "attempts", attempts.run))
        process.sections["attempts"] = lambda: {"open": attempts.open}
        metrics.NOVA_OPEN_ATTEMPTS.follow(lambda: attempts.open)


async def _release(database: Database, tenure: Tenure) -> None:
    """Release the lease of the audit at the end. Without it another process waits for some seconds."""
    if tenure.holder:
        try:
            await database.write(release_lease(tenure.name, tenure.holder))
        except StorageError:
            tenure.lost()


def _described(state: NovaAuditState) -> dict[str, object]:
    """Return the last round of the audit in this process, for the report of a process."""
    return {
        "ended_at": state.at,
        "freed": state.freed,
        "cells_unread": dict(state.unread),
        "unanswered_claims": {each.subject: f"{each.kind}: {each.waits_for}" for each in state.findings},
    }
