"""The record of a decision, read into the types that the scheduler decides with, and differences from it."""

from collections.abc import Sequence

import msgspec

from roost.model.errors import OperatorError
from roost.model.record import REFUSED, Attempt, PluginVersion, Run, Settings
from roost.model.secrets import HIDDEN
from roost.model.spec import RequestSpec
from roost.records import spec_of
from roost.records.errors import DamagedRecords
from roost.scheduler.errors import BadOptions, UnknownPlugin
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugin_names import filter_classes, weigher_classes
from roost.scheduler.run_records import attempts_of, generations_after, numbered, settings_of, weighed_in
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import Outcome

_encode = msgspec.json.Encoder().encode


class NotReproducible(OperatorError):
    """A decision cannot be made again; the text says why."""


def request_of(run: Run) -> RequestSpec:
    """Return the request of a run, without the parts that its record hides.

    Raises:
        NotReproducible: the record has no request spec of this program.
    """
    try:
        return spec_of(run)
    except DamagedRecords as error:
        raise NotReproducible(str(error)) from error


def hides_something(run: Run) -> bool:
    """Return whether the record hides parts of the request that look like secrets."""
    return HIDDEN.encode() in _encode(run.spec)


def options_of(settings: Settings | None) -> SchedulerOptions:
    """Return the options that a run was decided with.

    Raises:
        NotReproducible: the record has no options, or they are of another program.
    """
    if settings is None:
        raise NotReproducible("the record has no options: an earlier version of Roost made it")
    try:
        plain = {**settings.options, "plugins": {}}
        options = msgspec.convert(plain, SchedulerOptions)
        classes = [
            *filter_classes(options.filters, options.available_filters),
            *weigher_classes(options.weighers),
        ]
        own = msgspec.convert(settings.options.get("plugins", {}), dict[str, dict[str, object]])
        declared = {each.name: each.options for each in classes}
        structs = {
            name: msgspec.convert(values, options_type.struct)
            for name, values in own.items()
            if (options_type := declared.get(name)) is not None
        }
    except (msgspec.ValidationError, BadOptions, UnknownPlugin) as error:
        raise NotReproducible(f"the options of the run cannot be used by this program: {error}") from error
    return msgspec.structs.replace(options, plugins=structs)


def other_versions(settings: Settings, pools: HostPools) -> list[str]:
    """Return a sentence for each program or plugin whose version differs from that of the recorded run."""
    here = settings_of(pools)
    texts = []
    if here.roost != settings.roost:
        texts.append(f"the run was decided by Roost {settings.roost}, this is {here.roost}")
    texts += _others(settings.filters, here.filters)
    texts += _others(settings.weighers, here.weighers)
    return texts


def _others(then: Sequence[PluginVersion], now: Sequence[PluginVersion]) -> list[str]:
    # A plugin that cannot be loaded is an error before: one that is missing was left out on purpose.
    versions = {each.name: each for each in now}
    return [
        f"plugin {each.name} was {each.module} {each.version}, and is {other.module} {other.version}"
        for each in then
        if (other := versions.get(each.name)) is not None and other != each
    ]


_ordered = msgspec.json.Encoder(order="deterministic").encode
_AGREED = ("instance", "ordinal", "node", "host", "cell", "weight", "version")


class DecisionDifference(msgspec.Struct, frozen=True):
    """A part of a decision that differs from the record: ``recorded`` and ``again`` are its JSON texts."""

    what: str
    recorded: str
    again: str


def differences(run: Run, attempts: Sequence[Attempt], outcome: Outcome) -> list[DecisionDifference]:
    """Return the parts of a decision whose JSON texts differ from the record's in any bit."""
    recorded = _parts(run, _own(run, attempts))
    again = _parts_of(run, outcome)
    return [
        DecisionDifference(what, recorded.get(what, "nothing"), again.get(what, "nothing"))
        for what in [*recorded, *(each for each in again if each not in recorded)]
        if recorded.get(what) != again.get(what)
    ]


def _own(run: Run, attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the attempts of the run itself, without attempts on its alternates after it."""
    if not run.destinations:
        return list(attempts)
    last = {each.instance: each.selected.ordinal for each in run.destinations}
    return [each for each in attempts if each.ordinal <= last.get(each.instance, each.ordinal)]


def alternates_used(run: Run, attempts: Sequence[Attempt]) -> int:
    """Return the number of attempts on alternates after the run; records name no version for these."""
    return len(attempts) - len(_own(run, attempts))


def _parts_of(run: Run, outcome: Outcome) -> dict[str, str]:
    again = msgspec.structs.replace(
        run,
        steps=outcome.steps,
        refusal=outcome.refusal,
        destinations=numbered(outcome, _generations(run)),
        # Records of earlier program versions have no weights.
        weighed=weighed_in(outcome) if run.weighed else (),
    )
    return _parts(again, attempts_of(run.id, run.request_id, run.finished_at, outcome))


def _generations(run: Run) -> dict[str, int] | None:
    """Return the generations of instances that held something, after a run; None for a record of an earlier
    program version or of a rebuild."""
    if any(each.selected.generation is None for each in run.destinations):
        return None
    return generations_after(run)


def _parts(run: Run, attempts: Sequence[Attempt]) -> dict[str, str]:
    parts = {"steps": _text(run.steps), "refusal": _text(run.refusal)}
    if run.weighed:
        parts["weights"] = _text(run.weighed)
    for each in run.destinations:
        parts[f"destination of {each.instance}"] = _text((each.selected, each.alternates))
    for attempt in sorted(attempts, key=lambda each: (each.instance, each.ordinal)):
        # The end of a build is no part of the decision.
        ended = (REFUSED, attempt.reason) if attempt.result == REFUSED else ("claimed", None)
        agreed = [getattr(attempt, name) for name in _AGREED]
        parts[f"attempt {attempt.ordinal} of {attempt.instance}"] = _text((*agreed, *ended))
    return parts


def _text(value: object) -> str:
    return _ordered(value).decode()
