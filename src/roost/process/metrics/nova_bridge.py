"""The metrics of the bridge to Nova, as rows like those of ``catalogue``."""

from typing import Final

from roost.process.metrics.instruments import REQUEST_SECONDS, Counter, Gauge, Histogram, Label

NOVA_CALLS: Final = Counter(
    "roost_nova_calls_total",
    "Calls of `select_destinations` that the bridge has answered.",
    "Alert on `unavailable` and `failed`: Nova's users get NoValidHost for want of a service or by a fault. "
    "`conflict`: an instance held allocations that its call does not explain.",
    (
        Label(
            "outcome",
            "`placed`, `no_valid_host`, `bad_request`, `conflict`, `unavailable` or `failed`.",
            ("placed", "no_valid_host", "bad_request", "conflict", "unavailable", "failed"),
        ),
    ),
)
NOVA_CALL_DURATION: Final = Histogram(
    "roost_nova_call_duration_seconds",
    "Time from a call of Nova to its answer, without the broker.",
    "Nova's conductors wait `rpc_response_timeout`, `long_rpc_timeout` with heartbeats.",
    bounds=REQUEST_SECONDS,
)
NOVA_CASTS: Final = Counter(
    "roost_nova_casts_total",
    "Casts by which computes and the API said that a row has changed.",
    "0 in a cloud that works: the queues of the scheduler do not get them. Nothing is wrong then but that "
    "changes are seen some seconds later.",
)
NOVA_ROWS: Final = Counter(
    "roost_nova_rows_read_total",
    "Rows that the feed has read in Nova's databases.",
    "Its rate is the load that the bridge is for the cells' databases.",
)
NOVA_CELL_AGE: Final = Gauge(
    "roost_nova_cell_age_seconds",
    "Seconds since the cell was read whose last read is the oldest, or since it was found if it never was.",
    "Alert on more than a minute: that cell's database does not answer, and its hosts get no instances.",
    across="max",
)
NOVA_CELLS_DOWN: Final = Gauge(
    "roost_nova_cells_down",
    "Cells whose database did not answer the last read.",
    "The log names them.",
    across="max",
)
NOVA_UNMAPPED_HOSTS: Final = Gauge(
    "roost_nova_unmapped_hosts",
    "Hosts with compute nodes and without a host mapping.",
    "Run `nova-manage cell_v2 discover_hosts`: Nova's conductor buries instances that are sent there.",
    across="max",
)
NOVA_OUTSTANDING: Final = Gauge(
    "roost_nova_outstanding_claims",
    "Claims of instances that no cell's database lists on their host yet.",
    "It falls back between bursts. One that only grows: computes do not take their instances.",
    across="max",
)
NOVA_COMPARISONS: Final = Counter(
    "roost_nova_comparisons_total",
    "Decisions of shadow mode that were compared with the claims of Nova's scheduler, for each instance.",
    "`roost nova-scheduler report` has the reasons. `dropped`: too many calls waited for Nova's claim, or a "
    "database did not answer.",
    (
        Label(
            "outcome",
            "`same`, `tie`, `other`, `refused_by_roost`, `refused_by_nova`, `both_refused`, `failed` or "
            "`dropped`.",
            (
                "same",
                "tie",
                "other",
                "refused_by_roost",
                "refused_by_nova",
                "both_refused",
                "failed",
                "dropped",
            ),
        ),
    ),
)

NOVA_UNANSWERED: Final = Gauge(
    "roost_nova_unanswered_claims",
    "Claims that nobody answered for, as the last round of the audit found them.",
    "The log and the report of the process name their instances. With `[nova_bridge] free_unanswered_claims` "
    "they are freed once two rounds have seen them.",
    across="max",
)
NOVA_FREED_CLAIMS: Final = Counter(
    "roost_nova_freed_claims_total",
    "Claims that the audit was to free.",
    "Each was of an instance that is on no host, or beside the claim of an evacuated one. `refused`: the "
    "instance's claims had changed, so that nothing was written.",
    (Label("outcome", "`freed` or `refused`.", ("freed", "refused")),),
)
NOVA_AUDIT_ROUNDS: Final = Counter(
    "roost_nova_audit_rounds_total",
    "Rounds of the audit of claims that nobody answered for.",
    "Of several bridges one audits. `cells_away`: a cell did not answer, so that nothing was judged. "
    "`failed`: placement or another database did not; the log has the error.",
    (Label("outcome", "`complete`, `cells_away` or `failed`.", ("complete", "cells_away", "failed")),),
)

NOVA_OPEN_ATTEMPTS: Final = Gauge(
    "roost_nova_open_attempts",
    "Attempts to build or move an instance that are followed to their end.",
    "It follows the builds under way. One that only grows: Nova's conductors or computes do not end them.",
)
NOVA_ATTEMPTS: Final = Counter(
    "roost_nova_attempts_total",
    "Attempts to build or move an instance whose end was read in Nova's databases.",
    "`failed` instances went on to an alternate, or are in error: `roost records --result failed` has the "
    "reasons. `abandoned`: the instance was deleted, or Nova gave the boot up.",
    (Label("result", "`built`, `failed` or `abandoned`.", ("built", "failed", "abandoned")),),
)
