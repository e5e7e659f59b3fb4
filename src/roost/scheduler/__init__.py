"""The scheduler: from a request spec to a claimed host and alternates in the same cell.

    RequestSpec ─ request/ ─▶ SchedulingRequest ─ candidates/ ─▶ CandidateSource (hosts that could)
                                                                       │
    NodeTable (reports of hosts) ─────── filters/, weighers/ ──▶ HostPool (hosts and their weights)
                                                                       │
                Destination (claimed, + alternates) ◀─ selection/: pick, claim, go on after a refusal
                                                       gateways/: make the claims

scheduler    `select_destinations` and `use_alternate`, and the record of each run
request      from a request spec to the queries of a run: request filters, places, demanded hardware
candidates   sources of allocation candidates: the fleet, a fetched answer, reports, fallback queries
nodes        the node table: the reports of all compute nodes, as columns
pool         the host pool of a run: the hosts that are left, and their weights
cache        equivalence classes: results that are kept for requests that are alike
plugins      all members that filters and weighers may have, their registry and options, and calls of them
filters      one file each: the hosts that may be used
weighers     one file each: the better of these hosts
selection    the algorithm, which does no I/O: select hosts, alternates, replacement, results of claims
gateways     decisions and claims in the ledger's transaction, or over HTTP
explain      why a request was refused, and how many more instances fit
replay       recorded decisions made again
maintenance  plans that empty many hosts in few groups
api          the scheduler's operations over HTTP
client       a client of a scheduler over HTTP

forked_answers  answers about the head of a ledger that take seconds, in forked processes
options      the options, under Nova's names; configuration: their values in a configuration
errors       the exceptions
run_records  records of runs and attempts, and settings; run_metrics: counters of runs

To add a filter: a file in filters/ with a class as `roost.scheduler.plugins.plugins.Filter` says, named
``PLUGIN``, and the class's name in `enabled_filters`; a weigher the same. Other packages register theirs
under the entry points ``roost.filters`` and ``roost.weighers``.

The docstring of `Scheduler` has a complete program that uses the scheduler by itself.
"""

from roost.scheduler.errors import NoValidHost, SchedulerError
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.scheduler import Scheduler

__all__ = ["HostRequest", "NoValidHost", "Scheduler", "SchedulerError", "SchedulerOptions"]
