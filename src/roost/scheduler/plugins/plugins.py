"""The protocols of filters and weighers, and the plugins that the options enable.

A plugin *declares* the data that its results depend on, by the attributes and methods of `Filter` and
`Weigher` that are marked optional. A declaration is binding: results are cached until declared data change.

    looks_at        the parts of a host that it reads (`Looks`); without it the plugin is *foreign*
    key(request)    the parts of the request that it reads; without it nothing of the request
    domain(hosts)   the groups of hosts (racks, zones) if a host's result depends on its whole group

A foreign plugin may read anything. It is called for each decision, but only for hosts that no earlier filter
has excluded, and only on requests for which its ``key`` is not None. It slows down these requests and no
others. It may use all other parts of the protocol.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol

import structlog

from roost.fleet.columns import Bools, Float64
from roost.model.allocation import Candidate
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.errors import UnknownPlugin
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugin_names import filter_classes, left_out, weigher_classes
from roost.scheduler.plugins.plugin_options import declared_options
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


class Filter(Protocol):
    """Selects the hosts that may be used.

    Required are ``name``, and ``mask`` or ``named``. All else is optional, and has the default given here:

    - ``looks_at: Looks``, see there. Default: foreign.
    - ``key(request) -> Hashable | None``: all parts of the request that the verdicts depend on, except the
      scheduler's options and the plugin's own. Requests with equal keys get equal verdicts on the same host.
      None: the filter does not apply to this request; then it is not called, costs nothing, and lets every
      host pass. Make the key small: a filter for a few extra specs has these as its key, not the whole
      flavor. ``request.now`` and the names of the instances must not be part of it. Default: ``()``, the same
      verdicts for all requests.
    - ``reads: Sequence[Key]``: the extra specs, image properties and scheduler hints that it reads, see
      `roost.scheduler.request.keys.key.Key`. The user is told of a key that nothing reads. Default: nothing
      for a built-in, any key for a plugin of another package; with such a plugin no unknown key counts as a
      mistake.
    - ``no_effect(name, spec, table) -> str | None``: why a key that it reads has no effect in a request, None
      if it has one. Default: None.
    - ``depends_on_claims: bool``: called again after each claim of the run. For a filter that reads
      `Looks.MEMBERS`, or anything else that a claim changes on the host (free resources, instances, I/O
      operations). Default: False.
    - ``runs_on_rebuild: bool``: called for the rebuild of an instance on its host; other filters are not.
      Default: False.
    - ``domain(hosts) -> Int64``: see `roost.scheduler.plugins.declarations.domain_of`. Default:
      a host's verdict depends on that host alone.
    - ``named(hosts, request, progress) -> Named | None`` instead of ``mask``: for a verdict on a few hosts
      by name. ``hosts`` are some or all of the hosts not excluded yet: use its ``table`` alone. None if all
      may be used. The cost of ``named`` grows with the hosts that it names, that of ``mask`` with all hosts
      not excluded yet. It is called for each decision that it applies to, and needs no ``looks_at``.
    - ``names_by_own_members: bool``: ``named`` names excluded hosts, and each by the members of the server
      group on that host alone. After a claim it is then called for the members of that host only. Default:
      False.
    - ``narrow(host, candidates, request) -> Sequence[Candidate]``: drops and orders the allocation
      candidates of one host, just before one of them is claimed. ``candidates`` are those that fit, in
      placement's order as far as other plugins left it. A host without candidates left is passed over.
    - ``same_cause(constraint, hosts, request) -> Bools | None``: for each host whether the filter excludes it
      only for a condition that the constraint of the query expresses too; None if the filter has nothing to
      do with the constraint. Explanations treat both as one condition.
    - ``lack(host, request, progress) -> Lack | None``: the reason why the filter excludes a host, by its
      verdict or because ``narrow`` keeps no candidate. Called only for explanations of refusals. ``host`` is
      a `OneHost`.

    Filters are called in the order of the option, within these classes: first filters that declare
    ``looks_at``, then filters that have ``named``, then foreign ones; after all of these, in the same order,
    filters that depend on claims. So a foreign filter is called for few hosts.
    """

    name: str

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        """Return for each host whether it may be used: bool[len(hosts)]; None if all may.

        The verdict on a host must not depend on the other hosts of the call.
        """


class Weigher(Protocol):
    """Gives each host a number, by which hosts are ordered.

    Raw numbers are normalised to 0..1 over the hosts that passed the filters, and multiplied. The option
    ``multiplier_key`` of section ``filter_scheduler`` overrides ``default_multiplier`` (another section and
    name in ``multiplier_option``); aggregate metadata of the name ``multiplier_key`` overrides it for single
    hosts.

    Required are ``name``, ``multiplier_key``, ``default_multiplier`` and ``raw``. Optional are ``looks_at``,
    ``key(request)``, ``reads``, ``no_effect`` and ``domain(hosts)`` as for a `Filter`, and

    - ``free_of: str``, a resource class, if the numbers are exactly ``hosts.free`` of that class: they are
      then cached and updated without calling the weigher again; ``reported: str``, a column of the node table
      that is NaN where not reported: ``free_of`` holds only while no node reports this column;
    - ``minval: float``: lower numbers are raised to it, and it is normalised to 0 instead of the least;
    - ``multipliers(hosts) -> Float64``: the multiplier of each host, in place of option and metadata;
    - ``negated = True`` if the multiplier counts with the opposite sign, the configured one and those of
      aggregate metadata;
    - ``rank(host, candidates, request) -> Sequence[float] | None``: a number for each allocation candidate
      of one host, higher is better; called just before one of them is claimed. Candidates are ordered by the
      sum of multiplier × normalised number (0..1) over all weighers that rank; equal ones stay in placement's
      order. None: the weigher does not rank candidates of this request.
    """

    name: str
    multiplier_key: str
    default_multiplier: float

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        """Return a number for each host, higher is better: float64[len(hosts)].

        The number of a host must not depend on the other hosts of the call: after a claim the weigher is
        called only for the hosts that the claim changed. None if the weigher does not apply to this request,
        for any hosts. A number that is not finite counts as 0.

        Raises: `CannotWeigh` if the request must fail because one of the hosts has no number.
        """


class NarrowsCandidates(Protocol):
    """The optional part of a filter that drops and orders a host's candidates."""

    def narrow(
        self, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest
    ) -> Sequence[Candidate]:
        """Return some or all of the candidates, in the order in which they are to be claimed."""


class RanksCandidates(Protocol):
    """The optional part of a weigher that orders a host's candidates."""

    def rank(
        self, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest
    ) -> Sequence[float] | None:
        """Return a number for each candidate, higher is better; None if the weigher does not rank them."""


def filters(options: SchedulerOptions) -> list[Filter]:
    """Return the filters that the options enable, each made with its own options.

    A filter that Nova has removed is left out with a warning.

    Raises:
        UnknownPlugin: there is no filter of a name, or it cannot be loaded or made.
    """
    for name, instead in left_out(options.filters).items():
        _log.warning("a filter of enabled_filters is left out", filter=name, instead=instead)
    classes = filter_classes(options.filters, options.available_filters)
    return [_made(each, options) for each in classes]


def weighers(options: SchedulerOptions) -> list[Weigher]:
    """Return the weighers that the options name, each made with its own options.

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
