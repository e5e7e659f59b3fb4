"""Filters and weighers: all members that a plugin may have, and the plugins that the options enable.

A plugin is an object of any class. `Filter` and `Weigher` list its members: ``name`` and those marked as
required it must have, all others it may. They are read once, when the plugin is loaded.

A plugin *declares* the data that its results depend on. A declaration is binding: results are cached until
declared data change.

    looks_at           the parts of a host that it reads (`Looks`); without it the plugin is *foreign*
    key(request)       the parts of the request that it reads; without it nothing of the request
    reads_other_hosts  whether a host's result depends on other hosts too, such as those of its rack

A foreign plugin may read anything. It is called for each decision, but only for hosts that no earlier filter
has excluded, and only on requests for which its ``key`` is not None. It slows down these requests and no
others. It may use all other members.
"""

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import structlog

from roost.fleet.columns import Bools, Float64
from roost.fleet.constraint import Constraint
from roost.model.allocation import Candidate
from roost.model.spec import RequestSpec
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.errors import UnknownPlugin
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugin_class import PluginClass
from roost.scheduler.plugins.plugin_names import filter_classes, left_out, weigher_classes
from roost.scheduler.request.keys.key import Key
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

_log = structlog.get_logger()


class Named(NamedTuple):
    """The verdict of a filter that names hosts, by their indexes in the node table.

    ``allowed``: True if only these hosts may be used, False if all others may.
    """

    hosts: Collection[int]
    allowed: bool


class Lack(NamedTuple):
    """The reason why a host does not serve a request.

    ``text``: the rest of a sentence that begins with the host's name, such as ``is disabled``. ``distance``:
    from 0 (the host nearly serves it) to 1 (far from it).
    """

    text: str
    distance: float = 0.5


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Plugin:
    """The members that filters and weighers have in common. A member that is missing or None has its
    default."""

    plugin: object
    """The object whose members these are."""

    name: str
    """Required: the name in options, records and explanations."""

    looks_at: Looks | None = None
    """The parts of a host that it reads, see `Looks`. Default: foreign."""

    key: Callable[[SchedulingRequest], Hashable | None] | None = None
    """Returns all parts of the request that the results depend on, except the scheduler's options and the
    plugin's own. Requests with equal keys get equal results on the same host. None: the plugin does not apply
    to this request; then it is not called and costs nothing, a filter lets every host pass, and a weigher
    adds nothing. Make the key small: a filter for a few extra specs has these as its key, not the whole
    flavor. ``request.now`` and the names of the instances must not be part of it. Default: the same results
    for all requests."""

    reads_other_hosts: bool = False
    """True if the result for a host depends on other hosts too, such as all hosts of its rack. Then it is not
    cached, and a weigher is called again for all hosts after each claim. The plugin reads other hosts in the
    columns of ``hosts.table`` and in ``progress.members``; ``hosts.free`` and ``hosts.capacity`` are of the
    hosts of the call."""

    reads: Sequence[Key] | None = None
    """The extra specs, image properties and scheduler hints that it reads, see
    `roost.scheduler.request.keys.key.Key`. The user is told of a key that nothing reads. Default: nothing for
    a built-in, any key for a plugin of another package; with such a plugin no unknown key counts as a
    mistake."""

    no_effect: Callable[[str, RequestSpec, NodeTable], str | None] | None = None
    """Returns why a key that it reads has no effect in a request, None if it has one."""

    @classmethod
    def of(cls, plugin: object) -> Self:
        """Return the members of a plugin."""
        names = [each.name for each in fields(cls) if each.name != "plugin"]
        members: dict[str, Any] = {name: getattr(plugin, name, None) for name in names}
        if not isinstance(members["looks_at"], Looks):
            members["looks_at"] = None
        return cls(plugin=plugin, **{name: each for name, each in members.items() if each is not None})

    @property
    def module(self) -> str:
        """The module that the plugin comes from."""
        return type(self.plugin).__module__

    @property
    def looks_at_trees(self) -> bool:
        """True if it declares that it reads the hosts' provider trees."""
        return self.looks_at is not None and Looks.TREE in self.looks_at

    def key_of(self, request: SchedulingRequest) -> Hashable | None:
        """Return all parts of the request that the results depend on; None if the plugin does not apply."""
        return () if self.key is None else self.key(request)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Filter(Plugin):
    """Selects the hosts that may be used. Required are ``name``, and ``mask`` or ``named``.

    Filters are called in the order of the option, within these classes: first filters that declare
    ``looks_at``, then filters that have ``named``, then foreign ones; after all of these, in the same order,
    filters that depend on claims. So a foreign filter is called for few hosts.
    """

    mask: Callable[[HostView, SchedulingRequest, GroupPlacement], Bools | None] | None = None
    """``mask(hosts, request, progress)`` returns for each host whether it may be used: bool[len(hosts)]; None
    if all may. The verdict on a host must not depend on the other hosts of the call."""

    named: Callable[[HostView, SchedulingRequest, GroupPlacement], Named | None] | None = None
    """``named(hosts, request, progress)`` instead of ``mask``: for a verdict on a few hosts by name.
    ``hosts`` are some or all of the hosts not excluded yet: use its ``table`` alone. None if all may be used.
    The cost of ``named`` grows with the hosts that it names, that of ``mask`` with all hosts not excluded
    yet. It is called for each decision that it applies to, and needs no ``looks_at``."""

    names_by_own_members: bool = False
    """True if ``named`` names excluded hosts, and each by the members of the server group on that host alone.
    After a claim it is then called for the members of that host only."""

    depends_on_claims: bool = False
    """True if it is called again after each claim of the run. For a filter that reads `Looks.MEMBERS`, or
    anything else that a claim changes on the host (free resources, instances, I/O operations)."""

    runs_on_rebuild: bool = False
    """True if it is called for the rebuild of an instance on its host; other filters are not."""

    narrow: Callable[[OneHost, Sequence[Candidate], SchedulingRequest], Sequence[Candidate]] | None = None
    """``narrow(host, candidates, request)`` drops and orders the allocation candidates of one host, just
    before one of them is claimed: returns some or all of them, in the order in which they are to be claimed.
    ``candidates`` are those that fit, in placement's order as far as other plugins left it. A host without
    candidates left is passed over."""

    same_cause: Callable[[Constraint, HostView, SchedulingRequest], Bools | None] | None = None
    """``same_cause(constraint, hosts, request)`` returns for each host whether the filter excludes it only
    for a condition that the constraint of the query expresses too; None if the filter has nothing to do with
    the constraint. Explanations treat both as one condition."""

    lack: Callable[[OneHost, SchedulingRequest, GroupPlacement], Lack | None] | None = None
    """``lack(host, request, progress)`` returns the reason why the filter excludes a host, by its verdict or
    because ``narrow`` keeps no candidate. Called only for explanations of refusals."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Weigher(Plugin):
    """Gives each host a number, by which hosts are ordered.

    Raw numbers are normalised to 0..1 over the hosts that passed the filters, and multiplied. An option
    overrides ``default_multiplier``, see `PluginClass`; aggregate metadata of the name ``multiplier_key``
    overrides it for single hosts. Required are ``name``, ``multiplier_key``, ``default_multiplier`` and
    ``raw``.
    """

    multiplier_key: str
    default_multiplier: float

    raw: Callable[[HostView, SchedulingRequest, GroupPlacement], Float64 | None]
    """``raw(hosts, request, progress)`` returns a number for each host, higher is better:
    float64[len(hosts)]. The number of a host must not depend on the other hosts of the call: after a claim
    the weigher is called only for the hosts that the claim changed. None if the weigher does not apply to
    this request, for any hosts. A number that is not finite counts as 0. Raises `CannotWeigh` if the request
    must fail because one of the hosts has no number."""

    free_of: str | None = None
    """A resource class, if the numbers are exactly ``hosts.free`` of that class: they are then cached and
    updated without calling the weigher again."""

    reported: str | None = None
    """A column of the node table that is NaN where not reported: ``free_of`` holds only while no node reports
    this column."""

    minval: float = -math.inf
    """Lower numbers are raised to it, and it is normalised to 0. Default: the least number is."""

    multipliers: Callable[[HostView], Float64] | None = None
    """Returns the multiplier of each host, in place of option and metadata."""

    negated: bool = False
    """True if the multiplier counts with the opposite sign, the configured one and those of aggregate
    metadata."""

    rank: Callable[[OneHost, Sequence[Candidate], SchedulingRequest], Sequence[float] | None] | None = None
    """``rank(host, candidates, request)`` returns a number for each allocation candidate of one host, higher
    is better; called just before one of them is claimed. Candidates are ordered by the sum of multiplier ×
    normalised number (0..1) over all weighers that rank; equal ones stay in placement's order. None: the
    weigher does not rank candidates of this request."""

    def free_class(self, table: NodeTable) -> str | None:
        """Return the resource class whose free amounts are the numbers; None if they are others."""
        return None if self.reported is not None and table.has(self.reported) else self.free_of


class Plugins(NamedTuple):
    """The filters and weighers of a scheduler."""

    filters: Sequence[Filter]
    weighers: Sequence[Weigher]

    @classmethod
    def enabled(cls, options: SchedulerOptions) -> "Plugins":
        """Return the filters and weighers that the options enable, each made with its own options.

        A filter that Nova has removed is left out with a warning.

        Raises:
            UnknownPlugin: there is no plugin of a name, or it cannot be loaded or made.
        """
        for name, instead in left_out(options.filters).items():
            _log.warning("a filter of enabled_filters is left out", filter=name, instead=instead)
        filters = filter_classes(options.filters, options.available_filters)
        return cls(
            [Filter.of(_made(each, options)) for each in filters],
            [Weigher.of(_made(each, options)) for each in weigher_classes(options.weighers)],
        )


def in_order(filters: Iterable[Filter]) -> list[Filter]:
    """Return the filters in the order in which they are called: see `Filter`."""
    return sorted(filters, key=lambda each: (each.depends_on_claims, _cost(each)))


def _cost(plugin: Filter) -> int:
    if plugin.named is not None:
        return 1
    return 2 if plugin.looks_at is None else 0


def _made(found: PluginClass, options: SchedulerOptions) -> object:
    try:
        if found.options is None:
            return found.make()
        own = options.plugins.get(found.name)
        return found.make(found.options.struct() if own is None else own)
    except Exception as error:
        raise UnknownPlugin(f"{found.name} of {found.module} cannot be made: {error}") from error
