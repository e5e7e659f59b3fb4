"""Records of runs and attempts, made from outcomes of the selection, and the settings that they name."""

import hashlib
import math
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata

import msgspec
import structlog

import roost
from roost.ledger import LedgerError
from roost.model.reasons import WeighedHost
from roost.model.record import (
    ABANDONED,
    FAILED,
    PENDING,
    REFUSED,
    Asked,
    Attempt,
    PluginVersion,
    RecordSink,
    Run,
    Settings,
    end_of,
)
from roost.model.spec import Destination, UnreadKey
from roost.model.text import error_text
from roost.placement.errors import PlacementError
from roost.records.redact import redacted
from roost.scheduler.errors import BadRequestSpec, SchedulerError, SchedulerFault
from roost.scheduler.gateways import Decided
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugins import Plugin
from roost.scheduler.request.rebuild import is_rebuild
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest, new_run_id
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import Basis, ClaimAttempt, Outcome
from roost.scheduler.selection.replacement import AlternateRequest, Replacement
from roost.storage import StorageError

_log = structlog.get_logger()


class RunRecord:
    """The record of one run, from its begin to its end. ``run``: as far as it is known.

    Every run is put into the records, unless a database of this process fails.
    """

    def __init__(
        self,
        request: HostRequest,
        table: NodeTable,
        records: RecordSink,
        clock: Callable[[], float],
        *,
        seed: int,
        settings: Settings,
    ) -> None:
        """Raises: `BadRequestSpec` if the request spec cannot be encoded."""
        try:
            spec = redacted(request.spec)
        except UnicodeEncodeError as error:
            raise BadRequestSpec("the request spec holds text that cannot be encoded as UTF-8") from error
        self._table = table
        self._records = records
        self._clock = clock
        self.run = Run(
            id=request.run or new_run_id(),
            request_id=request.request_id or f"req-{uuid.uuid4()}",
            global_request_id=request.global_request_id,
            project_id=request.spec.project_id,
            user_id=request.spec.user_id,
            instances=request.instances,
            spec=spec,
            started_at=clock(),
            finished_at=math.nan,
            version=None,
            seed=seed,
            journal=table.journal,
            node_version=table.version,
            num_alternates=request.num_alternates,
            min_count=request.min_count,
            settings=settings,
            generations=dict(request.generations),
            beside=dict(request.beside),
            held_by=dict(request.held_by),
            handed=dict(request.handed),
            of_instances=dict(request.of_instances),
        )

    def asked(self, request: SchedulingRequest, warnings: tuple[UnreadKey, ...]) -> None:
        """Note the queries that the run is decided by, and the generations, which an earlier round may have
        changed."""
        self.run = msgspec.structs.replace(
            self.run,
            asked=Asked(request.query, request.fallbacks, request.limit, self._table.version),
            warnings=warnings,
            generations=dict(request.generations),
            beside=dict(request.beside),
            handed=dict(request.handed),
        )

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Record the run if it fails in the context. An unexpected error becomes a `SchedulerFault`."""
        run = self.run
        try:
            yield
        except (StorageError, LedgerError):
            self._table.release(*run.instances)
            raise
        except (SchedulerError, PlacementError) as error:
            if isinstance(error, SchedulerFault):
                _log.exception("a plugin failed", run=run.id, request_id=run.request_id)
            self._refused(str(error), error.basis if isinstance(error, SchedulerError) else None)
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error_text(error)}"
            fault = SchedulerFault(f"the scheduler or a plugin failed: {text}")
            _log.exception("a run of the scheduler failed", run=run.id, request_id=run.request_id)
            self._refused(str(fault), None)
            raise fault from error

    def end(self, request: SchedulingRequest, decided: Decided) -> Outcome:
        """Record a run that came to an outcome. Returns the outcome, its destinations numbered."""
        now = {**generations_after(self.run), **decided.generations}
        claims = decided.claims and not is_rebuild(request.spec)
        destinations = numbered(decided.outcome, now if claims else None)
        outcome = msgspec.structs.replace(decided.outcome, destinations=destinations)
        self._put(outcome, Basis(decided.version, decided.position, decided.node_version, decided.told))
        return outcome

    def _refused(self, reason: str, basis: Basis | None) -> None:
        self._table.release(*self.run.instances)
        self._put(Outcome((), (), (), reason), basis)

    def _put(self, outcome: Outcome, basis: Basis | None) -> None:
        run, finished = self.run, self._clock()
        if basis is not None:
            run = msgspec.structs.replace(
                run,
                version=basis.version,
                position=basis.position,
                told=basis.told,
                node_version=run.node_version if basis.node_version is None else basis.node_version,
            )
        ended = msgspec.structs.replace(
            run,
            finished_at=finished,
            steps=outcome.steps,
            refusal=outcome.refusal,
            destinations=outcome.destinations,
            weighed=weighed_in(outcome),
        )
        attempts = attempts_of(run.id, run.request_id, finished, outcome)
        if run.of_instances:
            ended, attempts = renamed(ended, attempts, run.of_instances)
        self._records.put([ended], attempts)


def renamed(run: Run, attempts: Iterable[Attempt], names: Mapping[str, str]) -> tuple[Run, list[Attempt]]:
    """Return a run and its attempts with other names of instances. ``names``: the new ones by the old."""
    destinations = (
        msgspec.structs.replace(each, instance=names.get(each.instance, each.instance))
        for each in run.destinations
    )
    return (
        msgspec.structs.replace(
            run,
            instances=tuple(names.get(each, each) for each in run.instances),
            destinations=tuple(destinations),
        ),
        [
            msgspec.structs.replace(each, instance=names.get(each.instance, each.instance))
            for each in attempts
        ],
    )


def as_claimed(run: Run, attempts: Iterable[Attempt] = ()) -> tuple[Run, list[Attempt]]:
    """Return a recorded run and its attempts with the consumers in place of the instances."""
    return renamed(run, attempts, {instance: consumer for consumer, instance in run.of_instances.items()})


def attempts_of(run: str, request_id: str, at: float, outcome: Outcome) -> list[Attempt]:
    """Return the attempts of a run; ordinals count those of one instance from 1.

    Claims of a run that placed nothing were given back.
    """
    ordinals: Counter[str] = Counter()
    found = []
    kept = {destination.instance for destination in outcome.destinations}
    for tried in outcome.tries:
        ordinals[tried.instance] += 1
        ordinal = ordinals[tried.instance]
        if tried.refusal is not None:
            result, reason = REFUSED, tried.refusal
        elif tried.instance in kept:
            result, reason = PENDING, None
        else:
            result, reason = ABANDONED, f"the claim was given back: {outcome.refusal}"
        found.append(_attempt(run, request_id, at, tried, ordinal, result, reason))
    return found


def generations_after(run: Run) -> dict[str, int]:
    """Return the generations that instances which held something have after one claim in a run."""
    kept = {**run.beside, **run.handed}
    before = {**run.generations, **{each: held.generation for each, held in kept.items()}}
    return {instance: generation + 1 for instance, generation in before.items()}


def numbered(outcome: Outcome, generations: Mapping[str, int] | None) -> tuple[Destination, ...]:
    """Return the destinations of a run, with the ordinals of the attempts that claimed them.

    ``generations``: the present ones of consumers that held something before; the others are new. None: the
    run claimed nothing.
    """
    tries = Counter(tried.instance for tried in outcome.tries)
    return tuple(
        msgspec.structs.replace(
            each,
            selected=msgspec.structs.replace(
                each.selected,
                ordinal=tries[each.instance],
                generation=None if generations is None else generations.get(each.instance, 1),
            ),
        )
        for each in outcome.destinations
    )


def weighed_in(outcome: Outcome) -> tuple[WeighedHost, ...]:
    """Return the numbers behind the weights of a run's first destination, as its record has them."""
    if not outcome.destinations:
        return ()
    first = outcome.destinations[0]
    return tuple(
        WeighedHost(selected.host, selected.weight, numbers())
        for selected, numbers in zip((first.selected, *first.alternates), outcome.weighed, strict=False)
    )


def attempts_after(request: AlternateRequest, at: float, found: Replacement) -> list[Attempt]:
    """Return the attempt that failed, and the attempts to claim alternates after it.

    A claimed alternate has its own ordinal, which counts the alternates before it: a repeated call does not
    judge these again.
    """
    run, request_id, failed = request.run, request.request_id, request.failed
    instance = request.of_instance or request.instance
    ended = end_of(
        failed, FAILED, at, run=run, request_id=request_id, instance=instance, reason=request.reason
    )
    tries, last = found.tries, failed.ordinal + len(found.tries)
    if found.selected is not None:
        last = found.selected.ordinal
    return [
        ended,
        *(
            _attempt(
                run,
                request_id,
                at,
                msgspec.structs.replace(tried, instance=instance),
                last - len(tries) + place,
                PENDING if tried.refusal is None else REFUSED,
                tried.refusal,
            )
            for place, tried in enumerate(tries, 1)
        ),
    ]


def _attempt(
    run: str, request_id: str, at: float, tried: ClaimAttempt, ordinal: int, result: str, reason: str | None
) -> Attempt:
    return Attempt(
        run=run,
        request_id=request_id,
        instance=tried.instance,
        ordinal=ordinal,
        at=at,
        host=tried.host,
        cell=tried.cell,
        weight=tried.weight,
        result=result,
        reason=reason,
        node=tried.node,
        version=tried.version,
        finished_at=None if result == PENDING else at,
    )


_encode = msgspec.json.Encoder(order="deterministic").encode


def settings_of(pools: HostPools) -> Settings:
    """Return the settings of a scheduler."""
    options, plugins = pools.options, pools.plugins
    plain = msgspec.json.decode(_encode(options), type=dict[str, object])
    filters, weighers = _versions(plugins.filters), _versions(plugins.weighers)
    text = _encode((roost.__version__, plain, filters, weighers))
    return Settings(
        digest=hashlib.sha256(text).hexdigest()[:32],
        roost=roost.__version__,
        options=plain,
        filters=filters,
        weighers=weighers,
    )


def _versions(plugins: Iterable[Plugin]) -> tuple[PluginVersion, ...]:
    return tuple(PluginVersion(each.name, each.module, _version(each.module)) for each in plugins)


def _version(module: str) -> str:
    """Return the version of the distribution that a module is from, empty if it is from none."""
    package = module.partition(".")[0]
    if package == roost.__name__:
        return roost.__version__
    for distribution in metadata.packages_distributions().get(package, ()):
        return metadata.version(distribution)
    return ""
