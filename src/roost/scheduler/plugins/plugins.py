"""What filters and weighers are, and those that the options enable.

A plugin *declares* what its answers depend on, by the attributes and methods of `Filter` and `Weigher` that
are marked optional. What it declares is an obligation: answers are kept until something declared changes.

    looks_at        what of a host it looks at (`Looks`); without it the plugin is *foreign*
    key(question)   what of the request it looks at; without it nothing of the request
    domain(hosts)   that a host's answer comes from a group of hosts (a rack, a zone)

A foreign plugin may look at anything. It is asked at each decision, but only about hosts still in play, and
only on requests for which its ``key`` is not None. It slows these requests down and no others. Nothing else
of the protocol is closed to it.
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
    """The verdict of a filter that names hosts: of the host table the indexes ``hosts``.

    ``allowed``: True if only these hosts may be used, False if all others may.
    """

    hosts: Collection[int]
    allowed: bool


class Lack(NamedTuple):
    """What a host lacks for a request. ``text`` is the rest of a sentence that begins with the host's name:
    ``is disabled``. ``distance``: from 0 (near) to 1 (far)."""

    text: str
    distance: float = 0.5


class Filter(Protocol):
    """Says which hosts may be used.

    Required are ``name``, and ``mask`` or ``named``. All else is optional, and has the default given here:

    - ``looks_at: Looks``, see there. Default: foreign.
    - ``key(question) -> Hashable | None``: all of the request that the verdicts depend on, of which nothing
      but the scheduler's options and the plugin's own need not be named. Requests with equal keys get equal
      verdicts on the same host. None: the filter has nothing to say on this request; then it is not asked,
      costs nothing, and lets every host pass. Make the key small, and leave out what does not matter: a
      filter for a few extra specs has these as its key and not the flavor. ``question.now`` and the names of
      the instances must not be part of it. Default: ``()``, the same verdicts for all requests.
    - ``reads: Sequence[Key]``: the extra specs, image properties and scheduler hints that it reads, see
      `roost.scheduler.request.keys.key.Key`. A key that nothing reads is told to the user. Default: of a
      plugin of another package, anything; then no key that is unknown counts as a mistake.
    - ``no_effect(name, spec, table) -> str | None``: why a key that it reads has no effect in a request, None
      if it has one. Default: each has.
    - ``depends_on_claims: bool``: asked again after each claim of the run. For a filter that looks at
      `Looks.MEMBERS`, or at anything else that a claim changes on the host (free resources, instances, I/O
      operations). Default: False.
    - ``runs_on_rebuild: bool``: asked when an instance is rebuilt where it is. Other filters are not.
      Default: False.
    - ``domain(hosts) -> Int64``: see `roost.scheduler.plugins.declarations.domain_of`. Default:
      a host's verdict comes from that host alone.
    - ``named(hosts, question, progress) -> Named | None`` instead of ``mask``: for a verdict on a few hosts
      by name. ``hosts`` are some or all of the hosts in play: use its ``table`` alone. None if all may be
      used. It costs what it names, and ``mask`` costs all hosts in play. It is asked at each decision that it
      judges, and needs no ``looks_at``.
    - ``names_by_own_members: bool``: ``named`` names hosts that may not be used, and each for the members of
      the server group on it alone. After a claim it is then asked about the members of that host only.
      Default: False.
    - ``narrow(host, candidates, question) -> Sequence[Candidate]``: drops and orders the allocation
      candidates of one host, just before one of them is claimed. ``candidates`` are those that fit, in
      placement's order as far as other plugins left it. A host without candidates left is passed over.
    - ``same_cause(constraint, hosts, question) -> Bools | None``: for each host whether the filter excludes
      it for nothing but what the constraint of the query asks for as well; None if it has nothing to do with
      the constraint. Explanations take both for one condition.
    - ``lack(host, question, progress) -> Lack | None``: in words what a host lacks that the filter excludes,
      by its verdict or because ``narrow`` leaves nothing. Only explanations of refusals ask it. ``host`` is a
      `OneHost`.

    Filters are asked in the order of the option, but: first those that declare ``looks_at``, then those that
    have ``named``, then foreign ones; after all of these, in the same order, those that depend on claims. So
    a foreign filter is asked about few hosts.
    """

    name: str

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        """For each host whether it may be used: bool[len(hosts)]; None if all may.

        The verdict on a host must not depend on which other hosts are asked about beside it.
        """


class Weigher(Protocol):
    """Says which hosts are better.

    Raw numbers are normalised to 0..1 over the hosts in play and multiplied; ``default_multiplier`` is
    overridden by the option ``multiplier_key`` of section ``filter_scheduler`` (another section and name in
    ``multiplier_option``), and for single hosts by aggregate metadata of the name ``multiplier_key``.

    Required are ``name``, ``multiplier_key``, ``default_multiplier`` and ``raw``. Optional are ``looks_at``,
    ``key(question)``, ``reads``, ``no_effect`` and ``domain(hosts)`` as for a `Filter`, and

    - ``free_of: str``, a resource class, if the numbers are nothing but what ``hosts.free`` says of that
      class: they are then kept without asking the weigher again; ``reported: str``, a column of the node
      table that is NaN where not reported: this holds only while no node reports it;
    - ``minval: float``: lower numbers are raised to it, and it is normalised to 0 instead of the least;
    - ``multipliers(hosts) -> Float64``: the multiplier of each host, in place of option and metadata;
    - ``negated = True`` if the multiplier counts with the opposite sign, the configured one and those of
      aggregate metadata;
    - ``rank(host, candidates, question) -> Sequence[float] | None``: a number for each allocation candidate
      of one host, higher is better; asked just before one of them is claimed. Candidates are ordered by the
      sum of multiplier × number normalised to 0..1 over the weighers that rank; of equal ones placement's
      first goes first. None: nothing to say.
    """

    name: str
    multiplier_key: str
    default_multiplier: float

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        """A number for each host, higher is better: float64[len(hosts)].

        The number of a host must not depend on which other hosts are asked about beside it: after a claim
        only the hosts that it changed are asked about again. None if the weigher has nothing to say on this
        request, whatever the hosts. A number that is not finite counts as 0.

        Raises: `CannotWeigh` if the request must fail because one of the hosts has no number.
        """


class NarrowsCandidates(Protocol):
    """The optional part of a filter that drops and orders a host's candidates."""

    def narrow(
        self, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest
    ) -> Sequence[Candidate]:
        """Some or all of the candidates, in the order in which they are to be claimed."""


class RanksCandidates(Protocol):
    """The optional part of a weigher that orders a host's candidates."""

    def rank(
        self, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest
    ) -> Sequence[float] | None:
        """A number for each candidate, higher is better; None if there is nothing to say."""


def filters(options: SchedulerOptions) -> list[Filter]:
    """The filters that the options enable, each made with its own options.

    A filter that Nova has removed is left out with a warning.

    Raises:
        UnknownPlugin: there is no filter of a name, or it cannot be loaded or made.
    """
    for name, instead in left_out(options.filters).items():
        _log.warning("a filter of enabled_filters is left out", filter=name, instead=instead)
    classes = filter_classes(options.filters, options.available_filters)
    return [_made(each, options) for each in classes]


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
