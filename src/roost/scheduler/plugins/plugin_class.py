"""`PluginClass`: a class of filters or weighers, with its members that are read before a plugin is made."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from roost.scheduler.errors import UnknownPlugin
from roost.scheduler.plugins.plain_plugins import PlainFilter, PlainWeigher, multiplier_key_of
from roost.scheduler.plugins.plugin_options import FILTER_SCHEDULER, PluginOptions, declared_options
from roost.scheduler.request.keys.key import Key

FILTER: Final = "filter"
WEIGHER: Final = "weigher"

_PLAIN: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    FILTER: ("host_passes", PlainFilter),
    WEIGHER: ("_weigh_object", PlainWeigher),
}
"""The method of a plain class, and the plugin around one."""

_OF_PLUGINS: Final = "roost.scheduler.plugins.plugins"
"""The module of `Filter` and `Weigher`, which hold the members of plugins as they were read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginClass:
    """A class of filters or weighers, found by its name.

    ``make``: makes a plugin; its argument is a struct of ``options``, if the class declares options as
    ``OPTIONS``. ``module``: where the class is. ``reads``: as of the plugin. ``beyond_nova``: True if Nova
    has no weigher of the name, so that it is not one of ``all_weighers``.

    Of weighers: ``multiplier_option``: section and name of the option that overrides ``default_multiplier``,
    by default ``multiplier_key`` in the section ``filter_scheduler``; ``least_multiplier``: its least value.
    """

    make: Callable[..., Any]
    name: str
    module: str
    options: PluginOptions | None = None
    reads: Sequence[Key] = ()
    beyond_nova: bool = False
    multiplier_key: str = ""
    default_multiplier: float = 1.0
    multiplier_option: tuple[str, str] = ("", "")
    least_multiplier: float | None = None

    @classmethod
    def of(cls, kind: str, found: Any) -> "PluginClass":
        """Return what a class of filters or weighers (``kind``) declares.

        Raises:
            UnknownPlugin: it lacks a required member, or has one that is not read any more.
        """
        if any(each.__module__ == _OF_PLUGINS for each in getattr(found, "__mro__", ())):
            raise UnknownPlugin("a plugin is a class of its own: it does not inherit from Filter or Weigher")
        method, wrapper = _PLAIN[kind]
        is_plain = hasattr(found, method) and not (hasattr(found, "mask") or hasattr(found, "raw"))
        if not is_plain and (lacking := _lacking(kind, found)):
            raise UnknownPlugin(f"it lacks {', '.join(lacking)}")
        if not is_plain and hasattr(found, "domain"):
            raise UnknownPlugin("its domain(hosts) is not read any more: say reads_other_hosts = True")
        key = multiplier_key_of(found) if kind == WEIGHER else ""
        return cls(
            make=(lambda *own: wrapper(found(*own))) if is_plain else found,
            name=found.__name__ if is_plain else found.name,
            module=found.__module__,
            options=declared_options(found),
            reads=tuple(getattr(found, "reads", ())),
            beyond_nova=bool(getattr(found, "beyond_nova", False)),
            multiplier_key=key,
            default_multiplier=float(getattr(found, "default_multiplier", 1.0)),
            multiplier_option=getattr(found, "multiplier_option", (FILTER_SCHEDULER, key)),
            least_multiplier=getattr(found, "least_multiplier", None),
        )


def _lacking(kind: str, found: Any) -> list[str]:
    if kind == WEIGHER:
        required = ("name", "multiplier_key", "default_multiplier", "raw")
        return [member for member in required if not hasattr(found, member)]
    lacking = [] if hasattr(found, "name") else ["name"]
    return lacking if hasattr(found, "mask") or hasattr(found, "named") else [*lacking, "mask"]
