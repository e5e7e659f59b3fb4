"""Every metric of Roost, as a row: name, help, advice, labels. Those of the bridge are in ``nova_bridge``.

The page docs/metrics.md is made from these rows. Label values come from sets that do not grow with the cloud:
no uuid, no host, no project, no text of a user.
"""

from typing import Final

from roost.process.metrics import nova_bridge
from roost.process.metrics.instruments import REQUEST_SECONDS, Counter, Gauge, Histogram, Label

AnyMetric = Counter | Gauge | Histogram

STAGE_SECONDS: Final = (0.0001, 0.00025, *REQUEST_SECONDS[:-1])
"""Bounds for durations of the stages of a commit."""

COUNTS: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000)
"""Bounds for numbers of things."""

OPERATION: Final = Label(
    "operation",
    "Method and path of the operation, such as `GET /resource_providers/{uuid}`. `unknown` if a request "
    "was refused before its operation was known: without a valid token, at the limit of requests in "
    "flight, or for a path or method that does not exist.",
)
STATUS: Final = Label(
    "status", "The HTTP status of the response; `none` if the client went away before the response began."
)
PROCESS: Final = Label(
    "process", "The number of the process in the service: 1, 2 and so on. A new process takes a free number."
)
FILTER: Final = Label("filter", "The name of a filter of `enabled_filters`.")

# HTTP

REQUEST_DURATION: Final = Histogram(
    "roost_http_request_duration_seconds",
    "Time from the arrival of a request to the end of its response.",
    "The rate of `_count` is the traffic. Alert on the share of status 5xx and on a high quantile of `PUT "
    "/allocations/{consumer}` and `GET /allocation_candidates`. Then look at the stages of a commit: "
    "if they are fast, requests wait for the processor, so add workers. Streams of `/v1/changes` last as "
    "long as their client wants.",
    (OPERATION, STATUS),
    bounds=REQUEST_SECONDS,
)
IN_FLIGHT: Final = Gauge(
    "roost_http_requests_in_flight",
    "Requests that have arrived and are not answered.",
    "A number that grows while the traffic does not means that the service is slower than its clients.",
)
ADMITTED: Final = Gauge(
    "roost_http_admitted_requests",
    "Requests in flight that count towards the limits of a process.",
    "Near the limits of reads or writes a process refuses: see `roost_http_overload_refusals_total`.",
    (Label("kind", "`read` or `write`.", ("read", "write")),),
)
BODIES: Final = Gauge(
    "roost_http_bodies_in_flight_bytes",
    "Bytes of the bodies of requests in flight.",
    "Near the limit a process refuses bodies. Clients with very large bodies should write fewer at once.",
)
ANSWERS: Final = Gauge(
    "roost_http_answers_in_flight_bytes",
    "Bytes of answers that clients have not taken yet.",
    "It grows with slow clients. Near the limit a process refuses reads.",
)
OVERLOAD: Final = Counter(
    "roost_http_overload_refusals_total",
    "Requests refused with 503 because a process does as much as it may.",
    "A few during a peak are what the limits are for. If they last, add workers or ask clients to send "
    "less; `queries` concern expensive queries only.",
    (
        Label(
            "cause",
            "The limit: `reads`, `writes`, `bodies`, `answers` or `queries`.",
            ("reads", "writes", "bodies", "answers", "queries"),
        ),
    ),
)
HEALTH_CHECKS: Final = Gauge(
    "roost_health_check_passed",
    "Whether a check of readiness passes in every process: 1 or 0.",
    "Alert on 0. `/readyz` says what is wrong. `database`: it does not answer. `ledger`: a process is far "
    "behind the head. `history`: its position is trimmed away. `keystone`: no token can be checked. "
    "`placement`, `hosts`: the scheduler has no placement, or no hosts. `api`, `cell`: the database of "
    "requests, or that of a cell, does not answer.",
    (
        Label(
            "check",
            "`database`, `ledger`, `history`, `keystone`, `placement`, `hosts`, `api` or `cell`.",
            ("database", "ledger", "history", "keystone", "placement", "hosts", "api", "cell"),
        ),
    ),
    across="min",
)
SLOW_CLIENTS: Final = Counter(
    "roost_connections_cut_total",
    "Connections that were closed because their client sent a body or took a long answer too slowly.",
    "Some are usual in a network that loses connections. Many from one address are an attack or a defect.",
    (Label("reason", "`body` or `answer`.", ("body", "answer")),),
)
FORKED_QUERIES: Final = Counter(
    "roost_forked_queries_total",
    "Expensive queries that were computed in a process of their own.",
    "`too_long` and `too_large` queries were refused with 400: find out who sends them without a limit.",
    (
        Label(
            "outcome",
            "`answered`, `too_long`, `too_large` or `failed`.",
            ("answered", "too_long", "too_large", "failed"),
        ),
    ),
)
CANDIDATES: Final = Histogram(
    "roost_allocation_candidates_returned",
    "Allocation candidates in a response.",
    "Many responses with 0 mean that clouds are full or that flavors ask for what no host has: `GET "
    "/v1/explain` says which constraint it is. Thousands are slow for the client, too: let it ask with a "
    "limit.",
    bounds=COUNTS,
)

# Ledger

COMMITS: Final = Counter(
    "roost_ledger_commits_total",
    "Commits that this service has appended.",
    "Its rate is the rate of transactions of the database. 0 while clients write means that all writes fail.",
)
BATCH: Final = Histogram(
    "roost_ledger_commit_commands",
    "Commands that were answered by one batch.",
    "Commands that wait at the same time share a commit. Large batches mean that the database is slower "
    "than the clients, which is fine as long as the latency is.",
    bounds=COUNTS[1:-2],
)
OUTRUNS: Final = Counter(
    "roost_ledger_outruns_total",
    "Times that another writer was first.",
    "Each costs a further round trip to the database. If the rate comes near the rate of commits, run "
    "fewer writing processes: they share commits better than they compete.",
    (
        Label(
            "cause",
            "`commit`: another writer took the number of the commit. `turn`: another writer had requested "
            "its turn, so this one paused.",
            ("commit", "turn"),
        ),
    ),
)
HEAD_CHECKS: Final = Counter(
    "roost_ledger_head_checks_total",
    "Head checks of batches.",
    "`skipped` is time saved for claims. If `missed` is more than a few percent of it, several processes "
    "write at the same time, and fewer would be faster.",
    (
        Label(
            "result",
            "`unchanged`: the replica was at the head. `changed`: it was not, or a turn was requested. "
            "`skipped`: the batch was drafted without a check. `missed`: a skipped check turned out to be "
            "needed.",
            ("unchanged", "changed", "skipped", "missed"),
        ),
    ),
)
STAGES: Final = {
    "check": "the head and the consumers are read",
    "follow": "commits of other writers are read and applied",
    "draft": "the commands run",
    "verify": "the skipped head check is made after all",
    "append": "the transaction of the commit",
    "turn": "a turn is requested or withdrawn",
    "pause": "another writer has its turn, or the database does not answer",
    "probe": "whether the database answers again",
    "answer": "the commands get their outcomes",
}
STAGE_DURATION: Final = Histogram(
    "roost_ledger_commit_stage_duration_seconds",
    "Time in each stage of a commit.",
    "`append` is the database with its sync to disk, `check` a round trip to it: if they are slow, look "
    "at the database and the network. `draft` is this process: if it is slow, batches are large or the "
    "processor is short.",
    (Label("stage", "; ".join(f"`{name}`: {text}" for name, text in STAGES.items()) + ".", tuple(STAGES)),),
    bounds=STAGE_SECONDS,
)
FAILED_BATCHES: Final = Counter(
    "roost_ledger_failed_batches_total",
    "Batches whose commands were answered with an error of the database or of the ledger.",
    "Clients got 503. `unavailable`: look at the database. `busy`: too many processes write. `unknown`: "
    "the connection was lost during a commit; clients must read before they repeat. `other`: the log has "
    "it.",
    (
        Label(
            "cause",
            "`unavailable`, `busy`, `unknown` or `other`.",
            ("unavailable", "busy", "unknown", "other"),
        ),
    ),
)
WAITING_COMMANDS: Final = Gauge(
    "roost_ledger_waiting_commands",
    "Commands that wait for a commit, those of the batch under way included.",
    "Divided by the rate of commands it is the time that a write waits. If it grows, the database does "
    "not keep up.",
)
VERSION: Final = Gauge(
    "roost_ledger_version",
    "The newest commit that every process has applied.",
    "It grows with the commits of all services on the database. If it stands still while others grow, see "
    "`/readyz`.",
    across="min",
)
LAG_COMMITS: Final = Gauge(
    "roost_ledger_lag_commits",
    "Commits that the process that is furthest behind lacks.",
    "A process catches up before it answers, so a lag costs time only. One that lasts means that the "
    "process stands still, or that its database does not answer.",
    across="max",
)
LAG_SECONDS: Final = Gauge(
    "roost_ledger_lag_seconds",
    "Age of the oldest commit that the process that is furthest behind lacks.",
    "Alert on more than `[healthcheck] max_lag_seconds`: such a process is not ready.",
    across="max",
)
FOLLOWED: Final = Counter(
    "roost_ledger_followed_commits_total",
    "Commits of other writers that the replicas of this service have applied, once for each process.",
    "It shows how much work the commits of other processes are for this one.",
)
RELOADS: Final = Counter(
    "roost_ledger_reloads_total",
    "Replicas that were loaded anew, because they were far behind or their position was trimmed away.",
    "Each takes as long as a start. More than a few after a start mean that processes stand still for "
    "long, or that `[ledger]` keeps too few commits.",
)

# Capacity

_CLASS: Final = Label("resource_class", "The resource class.")
_ZONE: Final = Label(
    "zone",
    "The availability zone of the hosts; `all` for the whole cloud. Processes without host aggregates, such "
    "as `roost serve`, have `all` alone.",
)
CAPACITY: Final = Gauge(
    "roost_capacity_units",
    "Units of a resource class that the inventories offer: the total less what is reserved, times the ratio.",
    "Take the greatest value of several services, as each has all of it: `max by (resource_class, zone)`.",
    (_CLASS, _ZONE),
    across="max",
)
USED: Final = Gauge(
    "roost_used_units",
    "Units of a resource class that consumers hold.",
    "Divided by `roost_capacity_units` it is how full the cloud is. Order hosts before a class that every "
    "instance needs is used up: new instances are refused, and migrations find no room, before it is.",
    (_CLASS, _ZONE),
    across="max",
)

# Scheduler

DECISIONS: Final = Counter(
    "roost_scheduler_decisions_total",
    "Runs of the scheduler.",
    "Alert on the share of `failed`, which is a fault; a `refused` one is an answer, and its cause is "
    "counted in `roost_scheduler_refusals_total`.",
    (
        Label(
            "result",
            "`placed`: all instances. `partly`: at least the minimum. `refused`: no valid host. "
            "`invalid`: the request spec cannot be turned into a query. `failed`: an error.",
            ("placed", "partly", "refused", "invalid", "failed"),
        ),
    ),
)
DECISION_DURATION: Final = Histogram(
    "roost_scheduler_decision_duration_seconds",
    "Time from the request spec to the durable claims.",
    "If it is slow while the stages of a commit are fast, look for a plugin that declares nothing.",
    bounds=REQUEST_SECONDS,
)
REFUSALS: Final = Counter(
    "roost_scheduler_refusals_total",
    "Runs that placed fewer instances than wanted, by the first cause.",
    "`placement`: no host has the resources and traits. `full`: the last ones were taken during the run. "
    "`claims`: placement refused every claim. `bound`: the run met a limit of its claims or of its "
    "time. `no_hosts`: no host has reported, so look at the agents. A filter's name: it removed the last "
    "hosts.",
    (
        Label(
            "cause",
            "`no_hosts`, `placement`, `claims`, `full`, `bound`, `other`, or the name of a filter of "
            "`enabled_filters`.",
        ),
    ),
)
EXPLANATIONS: Final = Counter(
    "roost_scheduler_explanations_total",
    "Refusals that were to be explained.",
    "`dropped`: too many waited. `failed`: the log says why. Their records have the plain reason alone.",
    (Label("outcome", "`explained`, `dropped` or `failed`.", ("explained", "dropped", "failed")),),
)
OFFERED_HOSTS: Final = Counter(
    "roost_scheduler_offered_hosts_total",
    "Hosts with allocation candidates, added up over all runs.",
    "Divided by the runs it is the number of hosts that filters choose among.",
)
REMOVED_HOSTS: Final = Counter(
    "roost_scheduler_removed_hosts_total",
    "Hosts that a filter removed, added up over all runs.",
    "Divided by `roost_scheduler_offered_hosts_total` it is the share of hosts that the filter costs. "
    "`ComputeFilter` removes hosts that are down or disabled.",
    (FILTER,),
)
ATTEMPTS: Final = Counter(
    "roost_scheduler_claim_attempts_total",
    "Claim attempts.",
    "Refused ones cost time. Over HTTP a few percent are normal, because others claim between query and "
    "claim.",
    (Label("outcome", "`claimed` or `refused`.", ("claimed", "refused")),),
)

# Conductors and agents

BUILDS: Final = Counter(
    "roost_compute_builds_total",
    "Builds that agents have finished.",
    "Alert on the share of `failed`: each one moves an instance to an alternate.",
    (Label("outcome", "`built` or `failed`.", ("built", "failed")),),
)
MOVES: Final = Counter(
    "roost_conductor_moves_total",
    "Moves of instances to another host after a failed build.",
    "`given_up` instances are in error, with the reason of each attempt: ask users for them. `postponed` "
    "means that placement or a database did not answer.",
    (
        Label(
            "outcome",
            "`moved`: an alternate was claimed. `refused`: an alternate can no longer be used; the next one "
            "is tried. `postponed`: it is tried again later. `given_up`: there is no further alternate.",
            ("moved", "refused", "postponed", "given_up"),
        ),
    ),
)
INSTANCE_MOVES: Final = Counter(
    "roost_cell_instance_moves_total",
    "Migrations, resizes and evacuations of instances that have ended.",
    "Ask `roost move list` for the reasons of those that `failed`. Moves of instances that were deleted "
    "meanwhile are not counted.",
    (
        Label(
            "kind",
            "`migrate`, `live_migrate`, `resize` or `evacuate`.",
            ("migrate", "live_migrate", "resize", "evacuate"),
        ),
        Label(
            "outcome",
            "`done`: the instance is on the target. `reverted`: it went there and back. `failed`: it has "
            "stayed where it was.",
            ("done", "reverted", "failed"),
        ),
    ),
)
SILENT_HOSTS: Final = Counter(
    "roost_conductor_silent_hosts_total",
    "Silent hosts that a super conductor has judged, if hosts are evacuated by themselves.",
    "Alert on `unproved`: such a host is not evacuated, and `roost host show` says why.",
    (
        Label(
            "outcome",
            "`fenced`: the fence of its agent has stopped its guests. `powered_off`: the fence command has "
            "powered its machine off. `unproved`: nothing proves that no guest runs there.",
            ("fenced", "powered_off", "unproved"),
        ),
    ),
)
MAINTAINED_HOSTS: Final = Counter(
    "roost_conductor_maintenance_hosts_total",
    "Hosts of maintenances that are over.",
    "Ask `roost maintenance status` for the reasons of those that were `left_out`.",
    (
        Label(
            "end",
            "`returned`: it was empty, worked on and given back. `left_out`: it was not.",
            ("returned", "left_out"),
        ),
    ),
)
MAINTENANCE_HOOK_CALLS: Final = Counter(
    "roost_conductor_maintenance_hook_calls_total",
    "Calls of the hook of maintenances that have ended.",
    "Alert on `failed`: `roost maintenance status` shows the last lines of the output.",
    (Label("outcome", "`done` or `failed`.", ("done", "failed")),),
)
BUILD_REQUESTS: Final = Gauge(
    "roost_conductor_requests_in_progress",
    "Build requests that are accepted and whose instances are not in their cells yet.",
    "If it grows, the scheduler or a cell's database does not keep up.",
)
HEARTBEATS: Final = Counter(
    "roost_compute_heartbeats_total",
    "Heartbeats that agents have written to their cells.",
    "Its rate is the number of hosts divided by the seconds between heartbeats. If it falls, hosts will "
    "soon count as down.",
)
REFUSED_NODES: Final = Counter(
    "roost_cell_refused_nodes_total",
    "Nodes whose reports a cell has begun to refuse: under a name that is another's, or beyond the limits.",
    "Each tells an operator to look: `roost host list` and the log of the agent have the reason. If it grows "
    "steadily, the agent of a host is not what its host is.",
)

# Records

RECORDS: Final = Counter(
    "roost_records_total",
    "Records of runs and attempts.",
    "`dropped`: the queue was full, because the backend is slow or away. `refused`: the backend could not "
    "store a record, and the log says why.",
    (Label("outcome", "`written`, `dropped` or `refused`.", ("written", "dropped", "refused")),),
)
WAITING_RECORDS: Final = Gauge(
    "roost_records_waiting",
    "Records that wait to be written.",
    "At `[records] queue_limit` further records are dropped.",
)

# Processes

WORKER_STARTS: Final = Counter(
    "roost_worker_starts_total",
    "Starts of worker processes.",
    "`ended` means that a worker has ended by itself or was killed: the log has its signal or exit status, "
    "and the log of the kernel says whether memory was short. Alert on `hung`. Many with `memory` mean that "
    "the limit is lower than what the fleet needs.",
    (
        Label(
            "cause",
            "`start` with the service, `ended` after a worker that has ended, `hung` after one that was "
            "killed because its event loop did not turn, `reload` or `memory` in place of another one.",
            ("start", "ended", "hung", "reload", "memory"),
        ),
    ),
)
LOOP_HOLDS: Final = Histogram(
    "roost_event_loop_hold_seconds",
    "Times of more than 20 ms in which one operation held the event loop of a process.",
    "Nothing else runs meanwhile: claims, probes and heartbeats wait. The rate of `_sum` is the share of "
    "time that an operation takes from all others. Alert on it, and report an operation that holds the "
    "loop for long as a defect. If all operations do, the machine has too few processors.",
    (
        Label(
            "operation",
            "Method and path of the operation, the type of a command of the ledger, as `Decide` and "
            "`WriteAllocations`, the function of a background task, or `unknown`: it is none of them, or "
            "the process stood still.",
        ),
    ),
    bounds=(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
BUILD_INFO: Final = Gauge(
    "roost_build_info",
    "Always 1; the labels say which version runs.",
    "During an upgrade two versions may serve the same database; afterwards there is one again.",
    (Label("version", "The version of Roost."), Label("python", "The version of Python.")),
    across="max",
)
START_TIME: Final = Gauge(
    "roost_process_start_time_seconds",
    "When a process has started, in seconds since the epoch.",
    "`count` of it is the number of processes that serve, `changes` of it the number of restarts.",
    (PROCESS,),
)
RESIDENT_MEMORY: Final = Gauge(
    "roost_process_resident_memory_bytes",
    "Resident memory of a process.",
    "It should level off some time after the start. Processes of one service share part of it.",
    (PROCESS,),
)
CPU: Final = Counter(
    "roost_process_cpu_seconds_total",
    "Processor time of a process.",
    "A worker uses one processor at most: near 1 per second it is saturated, so add workers.",
    (PROCESS,),
)
OPEN_FDS: Final = Gauge(
    "roost_process_open_fds",
    "Open file descriptors of a process.",
    "Each connection of a client is one. Raise `LimitNOFILE` before the limit is reached.",
    (PROCESS,),
)

CATALOGUE: Final[tuple[AnyMetric, ...]] = tuple(
    row
    for row in (*globals().copy().values(), *vars(nova_bridge).values())
    if isinstance(row, Counter | Gauge | Histogram)
)
"""All metrics, in the order of this file; then those of the bridge."""
