"""Records: the history of scheduler runs, claim attempts and their outcomes."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from roost.model.allocation import HandedClaim, KeptAllocations
from roost.model.reasons import Reasons, WeighedHost
from roost.model.request import CandidateQuery
from roost.model.spec import Destination, Selection, UnreadKey


class Step(msgspec.Struct, frozen=True):
    """One constraint that narrows the hosts (resource class, trait, filter); ``left`` hosts remain."""

    name: str
    left: int


class PluginVersion(msgspec.Struct, frozen=True):
    """A filter or weigher: its name, the module of its class, and the version of the distribution."""

    name: str
    module: str
    version: str


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that a decision depends on besides request and state: options, plugins, version of Roost.

    ``digest`` identifies the settings: equal settings have equal digests. ``options`` are the scheduler's
    options as JSON data. Backends store settings once, under their digest.
    """

    digest: str
    roost: str
    options: dict[str, object]
    filters: tuple[PluginVersion, ...] = ()
    weighers: tuple[PluginVersion, ...] = ()


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """The placement query for one instance, and the queries to fall back on.

    ``limit``: the number of requested candidates, None for all. ``node_version``: the version of the node
    table when the queries were made.
    """

    query: CandidateQuery
    fallbacks: tuple[CandidateQuery, ...] = ()
    limit: int | None = None
    node_version: int | None = None


class PlacementRead(msgspec.Struct, frozen=True, array_like=True):
    """One call of a run to a placement service over HTTP, with the versions that a replay needs.

    ``versions``: the ledger version of each response of the call. ``position``: for a claim, the number of
    changes before it in the commit after that version. ``node_version``: the version of the node table when
    the run continued with the response.
    """

    call: str
    versions: tuple[int, ...]
    position: int
    node_version: int | None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduler run: one call of ``select_destinations``, successful or not.

    ``request_id`` is the id of the user's request, and ``global_request_id`` the id that the user's client
    gave it, if any. Times are seconds since the epoch; ``started_at`` is also the ``now`` of the decision.
    ``spec`` is the request spec as JSON data without secrets. The first of ``steps`` has the number of all
    hosts. ``refusal`` is None if all requested instances were placed.

    Inputs of the decision:

    - ``generations``: consumer generations of the instances whose allocations the run replaced.
    - ``beside``: the allocations of instances that keep them, and get the claim in addition. ``held_by``: the
      consumers that hold the present hosts for instances, such as Nova's migrations. ``handed``: the
      allocations of instances whose migrations take them over with the claim. These four are by consumer.
    - ``of_instances``: by consumer, the instances that were claimed for by consumers of other uuids.
      The other fields of a run, and its attempts, name the instances.
    - ``asked``: the placement queries. ``num_alternates``, ``min_count``: as the caller gave them; a
      ``min_count`` of 0 stands for all instances.
    - ``version``: the ledger version, None for a run over HTTP or without placement. ``position``: the number
      of changes before the decision in its commit, None if unknown.
    - ``told``: for a run over HTTP, its calls to placement; empty if the responses named no versions.
    - ``journal``, ``node_version``: the node journal and its version, None without a journal.
    - ``seed``: the seed of the run's random numbers. ``settings``: options and plugins.

    Results:

    - ``destinations`` with alternates and weights; empty if the run was refused.
    - ``weighed``: the parts of the weights of the first destination: the selected host, then the first few
      of its alternates.
    - ``warnings``: keys of the request that had no effect.
    - ``reasons`` of a refusal, which are recorded after the run.

    Fields with a default are absent from runs of earlier versions.
    """

    id: str
    request_id: str
    project_id: str
    user_id: str
    instances: tuple[str, ...]
    spec: dict[str, object]
    started_at: float
    finished_at: float
    version: int | None
    global_request_id: str | None = None
    steps: tuple[Step, ...] = ()
    refusal: str | None = None
    seed: int | None = None
    node_version: int | None = None
    position: int | None = None
    told: tuple[PlacementRead, ...] = ()
    journal: str | None = None
    asked: Asked | None = None
    num_alternates: int = 0
    min_count: int = 0
    settings: Settings | None = None
    destinations: tuple[Destination, ...] = ()
    weighed: tuple[WeighedHost, ...] = ()
    reasons: Reasons | None = None
    generations: dict[str, int] = {}
    beside: dict[str, KeptAllocations] = {}
    held_by: dict[str, str] = {}
    handed: dict[str, HandedClaim] = {}
    of_instances: dict[str, str] = {}
    warnings: tuple[UnreadKey, ...] = ()


class RunReasons(msgspec.Struct, frozen=True):
    """The reasons of a run that was recorded before."""

    run: str
    reasons: Reasons


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to place one instance on one host.

    ``run``, ``instance`` and ``ordinal`` identify it. ``run`` is the id of the scheduler run that chose the
    host. ``ordinal`` counts the attempts from 1; earlier versions wrote none. ``result`` is one of the
    constants below; ``reason`` explains each result but `PENDING` and `BUILT`. An attempt that is put again
    with another result is the same attempt, which has ended: the first end counts.

    ``at`` and ``finished_at`` are in seconds since the epoch, ``finished_at`` is None while the attempt is
    pending. ``node`` is the uuid of the node's root provider, empty in attempts of earlier versions.
    ``version`` is the ledger version that the claim was checked on, where a run has one for each claim, else
    None.
    """

    run: str
    request_id: str
    instance: str
    at: float
    host: str
    cell: str
    weight: float
    result: str
    ordinal: int = 0
    reason: str | None = None
    node: str = ""
    finished_at: float | None = None
    version: int | None = None


PENDING = "pending"
"""The host is claimed and handed to a conductor. The end of the build is not known yet."""
BUILT = "built"
"""The instance runs on the host."""
REFUSED = "refused"
"""Placement or a check refused the claim."""
FAILED = "failed"
"""The build failed on the host, and its claim was released or moved."""
ABANDONED = "abandoned"
"""The claim was released before a build ended: the run was refused, or the instance was deleted."""

RESULTS = (PENDING, BUILT, REFUSED, FAILED, ABANDONED)


def end_of(
    claimed: Selection,
    result: str,
    at: float,
    *,
    run: str,
    request_id: str,
    instance: str,
    reason: str | None,
) -> Attempt:
    """Return the record of the end of the attempt that claimed a selection.

    ``at``: seconds since the epoch. The attempt's first record has the time of its start.
    """
    return Attempt(
        run=run,
        request_id=request_id,
        instance=instance,
        ordinal=claimed.ordinal,
        at=at,
        host=claimed.host,
        cell=claimed.cell,
        weight=claimed.weight,
        result=result,
        reason=reason,
        node=claimed.node,
        finished_at=at,
    )


class RecordSink(Protocol):
    """A receiver of the records of runs and attempts, such as `roost.records.RecordQueue`."""

    def put(
        self, runs: Sequence[Run], attempts: Sequence[Attempt], reasons: Sequence[RunReasons] = ()
    ) -> None:
        """Accept records to be written. Never raises and never waits.

        Attempts and reasons are put with their run or later.
        """
