"""The settings of a scheduler as records name them: its options, and its plugins with their versions."""

import hashlib
from collections.abc import Iterable
from importlib import metadata

import msgspec

import roost
from roost.model.record import PluginVersion, Settings
from roost.scheduler.plugins.plugins import Plugin
from roost.scheduler.selection.host_pools import HostPools

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
