"""The options of the conductors, in group ``conductor``."""

from oslo_config import cfg

from roost.conductor.agent_endpoint.offer_limits import OfferLimits
from roost.conductor.audit.rounds import AuditOptions
from roost.conductor.time_limits import TimeLimits
from roost.model.vocabulary import is_custom, standard_resource_classes

GROUP = "conductor"

OPTIONS = [
    cfg.BoolOpt(
        "use_scheduler_service",
        default=False,
        help="Conductors ask a scheduler over HTTP, by the options of keystoneauth1 in [scheduler_service]. "
        "Without it each has a scheduler of its own.",
    ),
    cfg.IntOpt(
        "max_attempts",
        default=3,
        min=1,
        help="An instance is tried on at most this many hosts, the first included.",
    ),
    cfg.FloatOpt(
        "build_seconds_limit",
        default=600.0,
        min=1.0,
        help="Seconds in which a host must confirm that it starts an instance that is assigned to it. After "
        "that the attempt has failed, and the next alternate is used.",
    ),
    cfg.FloatOpt(
        "destroy_seconds_limit",
        default=600.0,
        min=1.0,
        help="Seconds without a sign of life of its host after which an instance that is deleted is freed "
        "without it. The host is not up again before it has destroyed what it has of the instance.",
    ),
    cfg.ListOpt(
        "sharing_providers",
        default=[],
        help="Names of sharing providers, such as pools of storage, that the agents of this cell's hosts may "
        "make and change. A host that may do so can change them for all hosts that they serve.",
    ),
    cfg.FloatOpt(
        "agent_ratio_limit",
        min=0.0,
        help="The greatest allocation ratio of an inventory that the agents of this cell's hosts may offer. "
        "Without it they may offer any.",
    ),
    cfg.DictOpt(
        "agent_total_limits",
        default={},
        help="By resource class, the greatest total that the agent of a host may offer on one node and its "
        "children, such as VCPU:512,MEMORY_MB:4194304. Classes that are not named have none.",
    ),
    cfg.FloatOpt(
        "tombstone_days",
        default=7.0,
        min=0.01,
        help="Days for which a cell knows that an instance was deleted, so that a conductor that was stopped "
        "in the middle of its request cannot bring it back.",
    ),
    cfg.FloatOpt(
        "audit_seconds",
        default=60.0,
        min=1.0,
        help="Least seconds between two rounds of the audit, in each of which one of the conductors compares "
        "all claims, mappings and instances. Rounds take a tenth of the time at most.",
    ),
    cfg.FloatOpt(
        "audit_settle_seconds",
        default=30.0,
        min=1.0,
        help="Seconds between the two looks of a round at what differs. What both see is a finding. Nothing "
        "is repaired on hosts whose agents have not polled in between.",
    ),
    cfg.IntOpt(
        "audit_repairs_limit",
        default=10,
        min=0,
        help="A round of the audit with more repairs than this makes none, and asks an operator: `roost "
        "audit`. With 0 it always does.",
    ),
    cfg.FloatOpt(
        "history_days",
        default=30.0,
        min=0.01,
        help="Days for which the history of an instance is kept after its end.",
    ),
]


def time_limits_from(conf: cfg.ConfigOpts) -> TimeLimits:
    """Return the time limits of a configuration in which `OPTIONS` are registered."""
    group = conf[GROUP]
    return TimeLimits(
        build_seconds=group.build_seconds_limit,
        destroy_seconds=group.destroy_seconds_limit,
        tombstone_days=group.tombstone_days,
        history_days=group.history_days,
    )


def audit_options_from(conf: cfg.ConfigOpts) -> AuditOptions:
    """Return the options of the audit of a configuration in which `OPTIONS` are registered."""
    group = conf[GROUP]
    return AuditOptions(
        every=group.audit_seconds,
        settle=group.audit_settle_seconds,
        most_repairs=group.audit_repairs_limit,
    )


def offer_limits_from(conf: cfg.ConfigOpts) -> OfferLimits:
    """Return the most that agents may offer. Raises ValueError for a wrong amount or resource class."""
    totals: dict[str, int] = {}
    for name, text in conf[GROUP].agent_total_limits.items():
        if not is_custom(name) and name not in standard_resource_classes():
            raise ValueError(f"[{GROUP}] agent_total_limits: {name!r} is no name of a resource class")
        if not text.isascii() or not text.isdigit():
            raise ValueError(f"[{GROUP}] agent_total_limits: {text!r} of {name} is no whole number")
        totals[name] = int(text)
    return OfferLimits(conf[GROUP].agent_ratio_limit, totals)
