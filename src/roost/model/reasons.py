"""Reasons of a refused scheduler run: its stages, near misses and relaxations, and the best hosts' weights.

Hosts and trees are counted separately. A *host* is a compute node that some agent reports; a *tree* is one of
placement's provider trees. A tree without a reporting agent is no host, and a host may have no tree.
"""

from typing import Final, Literal

import msgspec

StageKind = Literal["provider", "query", "place", "filter", "candidate"]
"""Kinds of stages that remove hosts.

``provider``: hosts without a resource provider. ``query``: a constraint of the query. ``place``: the places
that the request names. ``filter``: a filter. ``candidate``: a filter that leaves none of a host's candidates
(the exact fit).
"""

RelaxationKind = Literal[
    "amount", "constraint", "place", "filter", "group", "count", "devices", "cells", "pair"
]
"""Kinds of relaxations.

``amount``: a lower amount in the query. ``constraint``: one constraint of the query less. ``place``,
``filter``: a place that the request names, or a filter, is ignored. ``group``: a higher limit of the server
group. ``count``: fewer instances. ``devices``: a lower count of a PCI alias. ``cells``: fewer vCPUs or less
memory of a guest with NUMA cells. ``pair``: two changes of which neither suffices alone.
"""

OF_THE_REQUEST = ("amount", "count", "group", "devices", "cells")
"""The kinds of relaxations that a user can make, and that name no host and no filter."""


MOST_MOVES: Final = 3
"""Instances that an explanation may move."""


class HostNames(msgspec.Struct, frozen=True, omit_defaults=True):
    """Names of hosts. ``left_out``: the number of further hosts, which are not named.

    ``names`` are folded: ``compute-[007-009,012]`` stands for four hosts. See `roost.model.folded_names`.
    """

    names: tuple[str, ...] = ()
    left_out: int = 0


class Stage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One condition of the request, and the hosts and trees that it removes.

    ``hosts`` and ``trees`` are removed in the order of the stages, each once: those of all stages and those
    that are left add up to all. ``hosts_alone``, ``trees_alone``, ``providers_alone`` do not meet the
    condition, whatever other stages remove; None where this was not determined for all of them. A condition
    that joins request groups (``group_policy``, ``same_subtree``) removes none alone: without the other
    stages there is nothing to join.
    ``hosts_sole``: hosts that no other stage removes. ``text``: the hosts that remain, in words that follow a
    plural subject, such as ``have 8 VCPU free``. ``removed`` names the hosts of ``hosts``, for places
    and filters.
    """

    kind: StageKind
    name: str
    hosts: int
    hosts_alone: int | None = None
    hosts_sole: int | None = None
    trees: int | None = None
    trees_alone: int | None = None
    providers_alone: int | None = None
    removed: HostNames = HostNames()
    text: str = ""


class Miss(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A near miss: a host that only one condition keeps from the request.

    ``kind`` and ``name`` are those of the `Stage`. ``text``: what the host lacks, as the rest of a sentence
    that begins with its name. ``distance``: from 0 (near) to 1 (far); of an amount, the part that is missing.
    ``provider``: the name of the provider that violates a constraint of the query. ``wanted`` and ``free``
    are of the resource class ``resource_class``.
    """

    host: str
    kind: StageKind
    name: str
    text: str
    distance: float
    provider: str | None = None
    resource_class: str | None = None
    wanted: int | None = None
    free: int | None = None


class Relaxation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change of the request with which it would have been placed, as the scheduler has verified.

    ``name``: the condition, as in the `Stage`; ``group``: the suffix of the request group. ``before`` and
    ``after``: the amount, the limit or the number of instances. ``distance``: from 0 (a small change) to 1.
    ``host``: where the instance would go. ``without``: for a change that leaves a condition out, the names by
    which it is left out, as in `RefusalCause`. ``parts``: the two changes of a pair.
    """

    kind: RelaxationKind
    name: str
    text: str
    distance: float
    host: str
    group: str | None = None
    before: int | None = None
    after: int | None = None
    without: tuple[str, ...] = ()
    parts: tuple["Relaxation", ...] = ()


class RefusalCause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A condition without which the request would have been placed, as the scheduler has verified.

    ``kind`` and ``name`` are those of the `Stage`. ``text``: the hosts that meet it, in words that follow a
    plural subject, such as ``have 8 VCPU free``. ``without``: the names by which the condition is left out of
    the request when it is decided again (`roost.scheduler.request.changed.Changes`); a filter that excludes
    hosts for the same condition is among them.

    ``met``: the hosts that meet the condition, whatever else they lack; None if this was not determined.
    ``hosts``: the hosts that lack nothing but the causes. ``wanted``: the amount of the resource class
    ``resource_class``; ``free``: the most of it that one provider of those hosts could give, on ``host``.
    """

    kind: StageKind
    name: str
    text: str
    without: tuple[str, ...]
    met: int | None = None
    hosts: int = 0
    resource_class: str | None = None
    wanted: int | None = None
    free: int | None = None
    host: str | None = None


class WeigherNumber(msgspec.Struct, frozen=True, array_like=True):
    """The result of one weigher for one host: raw, normalised to 0..1, and the multiplier.

    The weigher adds ``normalised`` times ``multiplier`` to the host's weight.
    """

    weigher: str
    raw: float
    normalised: float
    multiplier: float


class WeighedHost(msgspec.Struct, frozen=True):
    """One of the best hosts: its weight, and the numbers of the weighers that make it up.

    A weigher that rates all hosts equally adds nothing and is left out.
    """

    host: str
    weight: float
    numbers: tuple[WeigherNumber, ...] = ()


class ProposedMove(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An instance that could move from its host ``source`` to ``target``, both of one cell."""

    instance: str
    source: str
    target: str
    cell: str
    project_id: str
    flavor: str


class MoveSearch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The search for instances that could move, so that a refused request fits.

    ``moves``: in this order, each ended before the next begins, they make the request fit, as the scheduler
    has verified by really deciding them and then the request. Empty if none were found. ``host``: where the
    last instance of the request would go.

    ``most``: the instances that were allowed to move. ``hosts``: the number of hosts whose instances were
    looked at; ``instances``: those of them that may move; ``fixed``: those that may not. ``complete``: False
    if the search ended before all ways were tried, or could not look at all hosts.
    """

    most: int
    moves: tuple[ProposedMove, ...] = ()
    host: str = ""
    hosts: int = 0
    instances: int = 0
    fixed: int = 0
    complete: bool = True


class Reasons(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The reasons of the refusal of a run.

    ``sentence``: the reason in one sentence; ``public``: the same without names and numbers of hosts.

    ``version``, ``node_version``: the versions of the ledger and of the node journal that the reasons were
    found on, which may be newer than those of the run. ``placed``: the number of instances that could be
    placed; the reasons are those of the next instance, with these placed. ``query``: the placement query in
    words.

    ``hosts``, ``trees``, ``providers``: their numbers in all. ``left``: hosts that pass all stages: none, or
    those that fit by now. ``trees_left``: trees that pass the query, with a host or without.

    ``causes``: the condition that keeps the request from all hosts, or two that do so together: without them
    it would have been placed. Empty if more than two conditions do, or if they were not found in time.

    ``misses`` nearest first, ``relaxations`` smallest first. ``complete``: False if the time ran out before
    all of them were tried.

    ``move_search``: None if no moves were looked for.
    """

    sentence: str
    public: str
    version: int | None = None
    node_version: int | None = None
    placed: int = 0
    query: tuple[str, ...] = ()
    hosts: int = 0
    trees: int = 0
    providers: int = 0
    stages: tuple[Stage, ...] = ()
    left: int = 0
    trees_left: int = 0
    causes: tuple[RefusalCause, ...] = ()
    misses: tuple[Miss, ...] = ()
    relaxations: tuple[Relaxation, ...] = ()
    weighed: tuple[WeighedHost, ...] = ()
    complete: bool = True
    move_search: MoveSearch | None = None
