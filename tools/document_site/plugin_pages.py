"""Filters and weighers: each in full, with its options and the keys of requests that it reads."""

import importlib
import inspect
from collections.abc import Iterator, Sequence
from typing import Final

from document_site.docstrings import as_markdown
from document_site.markdown import SitePage, code, heading, label_of, plain, table
from document_site.option_pages import link_to
from roost.scheduler.configuration import multiplier_option
from roost.scheduler.options import DEFAULT_FILTERS
from roost.scheduler.plugins.plugin_class import FILTER, WEIGHER, PluginClass
from roost.scheduler.plugins.plugin_names import built_ins
from roost.scheduler.request.keys.key import Key

PATHS: Final = {FILTER: "reference/filters.md", WEIGHER: "reference/weighers.md"}

_OPENINGS: Final = {
    FILTER: "A filter excludes hosts. Those that are on are named by "
    f"{link_to('filter_scheduler', 'enabled_filters')}.",
    WEIGHER: "A weigher gives each host a number. Numbers are normalised to 0..1 over the hosts that passed "
    "the filters, multiplied, and added up. Those that are on are named by "
    f"{link_to('filter_scheduler', 'weight_classes')}.",
}


def plugin_pages() -> Iterator[SitePage]:
    """Yield the pages of filters and of weighers."""
    for kind, path in PATHS.items():
        plugins = built_ins(kind)
        opening = f"{_OPENINGS[kind]} [Filters and weighers](../scheduling.md) says how hosts are chosen.\n"
        sections = [_section(kind, each) for each in plugins]
        yield SitePage(
            path, "\n".join((heading(1, f"{kind.title()}s"), opening, _summary(kind, plugins), *sections))
        )


def _summary(kind: str, plugins: Sequence[PluginClass]) -> str:
    rows = [
        (f"[{code(each.name)}](#{_label(each)})", plain(_first_sentence(each)), _state(kind, each))
        for each in plugins
    ]
    return table((kind, "", "by default"), rows)


def _first_sentence(plugin: PluginClass) -> str:
    """Return the first sentence of the docstring of a plugin's module."""
    return " ".join(_of_module(plugin).split()).partition(". ")[0].removesuffix(".")


def _more_of_module(plugin: PluginClass) -> str:
    """Return the docstring of a plugin's module without its first paragraph."""
    return _of_module(plugin).partition("\n\n")[2]


def _of_module(plugin: PluginClass) -> str:
    return inspect.getdoc(importlib.import_module(plugin.module)) or ""


def _section(kind: str, plugin: PluginClass) -> str:
    parts = [
        heading(2, code(plugin.name), _label(plugin)),
        f"{as_markdown(plugin.make.__doc__ or '')}\n",
        f"{as_markdown(_more_of_module(plugin))}\n",
        f"By default: {_state(kind, plugin)}.\n",
    ]
    if kind == WEIGHER:
        group, option = multiplier_option(plugin)
        metadata = f", and metadata {code(plugin.multiplier_key)} of aggregates"
        parts.append(
            f"Multiplier: {plugin.default_multiplier:g}, by {link_to(group, option.dest)}{metadata}.\n"
        )
    if plugin.options is not None:
        links = [link_to(plugin.options.group, each.dest) for each in plugin.options.options]
        parts.append(f"Options: {', '.join(links)}.\n")
    if plugin.reads:
        parts.append(f"Reads: {', '.join(map(_key, plugin.reads))}.\n")
    parts.append(f"Module: {code(plugin.module)}.\n")
    return "\n".join(parts)


def _state(kind: str, plugin: PluginClass) -> str:
    if plugin.beyond_nova:
        return "off; Nova has none of this name"
    return "on" if kind == WEIGHER or plugin.name in DEFAULT_FILTERS else "off"


def _key(key: Key) -> str:
    return f"{key.where.replace('_', ' ')} {code(key.shown)}"


def _label(plugin: PluginClass) -> str:
    return label_of("plugin", plugin.name)
