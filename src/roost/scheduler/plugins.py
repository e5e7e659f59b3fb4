"""What filters and weighers are, and those that the options enable."""

import math
from enum import Enum
from typing import Any, Protocol

import structlog

from roost.fleet.columns import Bools, Float64
from roost.scheduler.errors import UnknownPlugin
from roost.scheduler.offers import HostView
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugin_names import filter_classes, left_out, weigher_classes
from roost.scheduler.plugin_options import declared_options
from roost.scheduler.question import Progress, Question

_log = structlog.get_logger()


class Scope(Enum):
    """All that a plugin looks at, if it says so by an attribute ``scope``: then what it said is kept, and it
    is asked again only for hosts of which something has changed.

    A plugin that says nothing may look at anything, and is asked at each decision for each host.
    """

    REPORT = "report"
    """What the host reports (of its heartbeat only ``table.seen_since(question.oldest_heartbeat)``) and the
    options. Not the request, not the clock, not other hosts; of the whole table, which metadata keys there
    are, and whether a weigher has anything to say at all."""
    HOST = "host"
    """The same, and for a weigher what the host's tree has and has left."""
    REQUEST = "request"
    """For a filter: what the host reports, the options, and of the request the flavor, the zone, image
    properties and hints."""
    GROUP = "group"
    """For a filter: anything, but it has nothing to say on a request without a server group."""


OF_A_HOST = (Scope.REPORT, Scope.HOST)
"""Nothing of the request."""


def free_of_class(weigher: object) -> str | None:
    """The resource class whose free amount a weigher's numbers are; None if they are anything else."""
    free_of = getattr(weigher, "free_of", None)
    return free_of if isinstance(free_of, str) else None


def minval_of(weigher: object) -> float:
    """The number that a weigher's numbers are normalised from; -inf if it is the least of them."""
    minval = getattr(weigher, "minval", None)
    return -math.inf if minval is None else float(minval)


def is_negated(weigher: object) -> bool:
    """Whether a weigher's multiplier counts with the opposite sign."""
    return bool(getattr(weigher, "negated", False))


def scope_of(plugin: object) -> Scope | None:
    """What a plugin says that it looks at; None if it does not say."""
    scope = getattr(plugin, "scope", None)
    return scope if isinstance(scope, Scope) else None


class Filter(Protocol):
    """Says which hosts may be used. ``depends_on_claims``: asked again after each claim of the run.

    It may have a ``scope``, see `Scope`.
    """

    name: str
    depends_on_claims: bool

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        """For each host whether it may be used: bool[len(hosts)]; None if all may."""


class Weigher(Protocol):
    """Says which hosts are better.

    Raw weights are normalised to 0..1 over the hosts in play and multiplied; ``default_multiplier`` is
    overridden by the option ``multiplier_key`` of section ``filter_scheduler`` (another section and name in
    ``multiplier_option``), and for single hosts by aggregate metadata of the name ``multiplier_key``.
    It may also have

    - ``scope``, see `Scope`;
    - ``free_of``, a resource class, if its numbers are nothing but what ``hosts.free`` says of that class:
      they are then kept without asking the weigher again;
    - ``minval``, a number: lower numbers are raised to it, and it is normalised to 0 instead of the least;
    - ``negated = True`` if the multiplier counts with the opposite sign, the configured one and those of
      aggregate metadata.
    """

    name: str
    multiplier_key: str
    default_multiplier: float

    def raw(self, hosts: HostView, question: Question) -> Float64 | None:
        """A number for each host, higher is better: float64[len(hosts)].

        Each number must come from its host alone, whatever other hosts are asked for beside it: after a
        claim only the hosts that it changed are asked for again. None if the weigher has nothing to say
        on this request, whatever the hosts.

        Raises: `CannotWeigh` if the request must fail because one of the hosts has no number.
        """


def filters(options: SchedulerOptions) -> list[Filter]:
    """The filters that the options enable, each made with its own options.

    A filter that Nova has removed is left out with a warning.

    Raises:
        UnknownPlugin: there is no filter of a name, or it cannot be loaded or made.
    """
    for name, instead in left_out(options.filters).items():
        _log.warning("a filter of enabled_filters is left out", filter=name, instead=instead)
    return [_made(each, options) for each in filter_classes(options.filters, options.available_filters)]


def weighers(options: SchedulerOptions) -> list[Weigher]:
    """The weighers that the options name, each made with its own options.

    Raises:
        UnknownPlugin: there is no weigher of a name, or it cannot be loaded or made.
    """
    return [_made(each, options) for each in weigher_classes(options.weighers)]


def _made(plugin: Any, options: SchedulerOptions) -> Any:
    declared = declared_options(plugin)
    try:
        if declared is None:
            return plugin()
        own = options.plugins.get(plugin.name)
        return plugin(declared.struct() if own is None else own)
    except Exception as error:
        raise UnknownPlugin(f"{plugin.name} of {plugin.__module__} cannot be made: {error}") from error
