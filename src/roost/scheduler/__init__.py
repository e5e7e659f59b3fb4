"""The scheduler: from a request spec to a claimed host and alternates in the same cell.

    RequestSpec ─ query + request_filters/ ─▶ CandidateQuery ─ gateway ─▶ Offers (hosts that could)
                                                                             │
    NodeTable (what hosts report) ──────────── filters/, weighers/ ──────────┤
                                                                             ▼
                       Destination (claimed, + alternates) ◀── selection: pick, claim, next on refusal

    scheduler        `select_destinations` and `use_alternate`, and the record of each run
    query            from a request spec to the candidate queries; requested/ has the request groups, and
                     request_filters/ narrow the query by options and the node table
    places           the hosts and nodes that a request names
    rebuild          a request that stays on its host
    paired_offers    the offers of two queries, of which either serves
    nodes            the node table: takes in what every compute node reports; node_columns (numbers),
                     metric_columns, labels (values that many nodes share), node_metadata (of aggregates),
                     node_lookups (from names to nodes), node_rows (rows that are free)
    outstanding      what claims took from nodes whose reports do not contain it yet
    offers           the hosts that placement offers, and what a claim takes from them: fleet_offers
                     straight from the fleet, answered_offers from GET /allocation_candidates
    question         what one run decides upon; outcome: what comes of it
    claim_result     the result of a claim: claimed, refused, retry, fatal; every error is mapped to one there
    selection        the one algorithm: pick, claim, next on refusal; it does no I/O
    field            the hosts in play for one run and what they weigh: offered_field filters and weighs all
                     that are offered, kept/ goes on from what is known of requests of that shape
    weighing         one weight for each host, kept right from claim to claim
    heartbeats       which hosts were seen lately, without looking at all of them
    alternates       other hosts for each instance that was placed
    replacement      the use of an alternate: checked again, then the claim is swapped to it
    sources/         where hosts come from: placement, the cells' databases, or a list of some seconds' age
    bounds           how many claims and candidates a run may try, and for how long
    gateways/        how a claim is made: in the ledger's transaction, or over HTTP
    filters/         one file for each: which hosts may be used; host_limits, hints: what several have alike
    weighers/        one file for each: which of them are better; soft_groups: what two have alike
    request_filters/ one file for each: what can be asked of placement already
    plugins          what filters and weighers are, and those that are enabled
    declarations     what they declare, with defaults; asking: asking them, what they raise is contained
    candidate_order  the order in which they put a host's candidates
    plugin_names     their classes by name: built-ins by Nova's class names, entry points, import paths
    plugin_options   their own options; metrics_options: those of section ``metrics``, which two plugins read
    removed_filters  filters that Nova had once, and what stands in
    plain_plugins    plugins asked about one host at a time, as Nova's are; host_state: what they see of it
    fragmentation    what is free of devices that typical requests cannot use

To add a filter: a file in filters/ with a class as `plugins.Filter` says, named ``PLUGIN``, and the class's
name in `enabled_filters`; a weigher the same. Other packages register theirs under the entry points
``roost.filters`` and ``roost.weighers``.

The docstring of `Scheduler` has a complete program that uses the scheduler by itself.
"""

from roost.scheduler.errors import NoValidHost, SchedulerError
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.scheduler import Scheduler

__all__ = ["NoValidHost", "Scheduler", "SchedulerError", "SchedulerOptions"]
