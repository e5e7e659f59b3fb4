"""The record of a decision, read into the types that the scheduler decides with."""

from collections.abc import Sequence

import msgspec

from roost.model.errors import OperatorError
from roost.model.record import PluginVersion, Run, Settings
from roost.model.secrets import HIDDEN
from roost.model.spec import RequestSpec
from roost.records import spec_of
from roost.records.errors import DamagedRecords
from roost.scheduler.errors import BadOptions, UnknownPlugin
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugin_names import filter_classes, weigher_classes
from roost.scheduler.run_records import settings_of
from roost.scheduler.selection.host_pools import HostPools

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
    versions = {each.name: each for each in now}
    return [
        f"plugin {each.name} was {each.module} {each.version}, and is "
        + (f"{other.module} {other.version}" if (other := versions.get(each.name)) else "not there")
        for each in then
        if versions.get(each.name) != each
    ]
