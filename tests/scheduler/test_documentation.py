"""docs/scheduling.md has the filters and weighers as they are."""

import re
from pathlib import Path

import pytest

from roost.scheduler.configuration import multiplier_option
from roost.scheduler.options import DEFAULT_FILTERS
from roost.scheduler.plugins.plugin_class import FILTER, WEIGHER, PluginClass
from roost.scheduler.plugins.plugin_names import built_ins
from roost.scheduler.request.keys.key import Key
from roost.scheduler.request.keys.readers import all_known

DOCUMENT = Path(__file__).parents[2] / "docs" / "scheduling.md"


def table(kind: str) -> str:
    """The table of all built-ins, in Markdown."""
    if kind == FILTER:
        lines = ["| filter | passes | own options |", "|---|---|---|"]
    else:
        lines = ["| weigher | number | multiplier (default) | own options |", "|---|---|---|---|"]
    for each in built_ins(kind):
        cells = [_name(each), _summary(each)]
        if kind == WEIGHER:
            group, option = multiplier_option(each)
            where = "" if group == "filter_scheduler" else f"[{group}] "
            cells.append(f"`{where}{option.dest}` ({each.default_multiplier:g})")
        cells.append(_options(each))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _name(plugin: PluginClass) -> str:
    if plugin.beyond_nova:
        return f"*{plugin.name}*"
    return f"**{plugin.name}**" if plugin.name in DEFAULT_FILTERS else plugin.name


def _summary(plugin: PluginClass) -> str:
    """The first sentence of the docstring, or the first of the module's if the class's is too long."""
    text = " ".join((plugin.make.__doc__ or "").split())
    sentence = re.split(r"\. |\.$", text)[0]
    return sentence.replace("``", "`").replace("|", "\\|")


def _options(plugin: PluginClass) -> str:
    declared = plugin.options
    if declared is None:
        return ""
    where = "" if declared.group == "filter_scheduler" else f"[{declared.group}] "
    return ", ".join(f"`{where}{option.dest}`" for option in declared.options)


def keys_table() -> str:
    """The table of all known keys: one line for those of the same readers in one part of a request."""
    lines = ["| in | key | read by |", "|---|---|---|"]
    rows: dict[tuple[str, str], dict[str, None]] = {}
    by_key: dict[Key, dict[str, None]] = {}
    for known in all_known():
        by_key.setdefault(known.key, {}).update(dict.fromkeys(known.readers))
    for key, readers in by_key.items():
        rows.setdefault((key.where, ", ".join(readers)), {})[key.shown] = None
    for (where, readers), keys in sorted(rows.items()):
        lines.append(f"| {where.replace('_', ' ')} | `{', '.join(keys)}` | {readers} |")
    return "\n".join(lines) + "\n"


def test_documentation_has_all_known_keys() -> None:
    text = DOCUMENT.read_text()
    begin, end = "<!-- keys: made by tests/scheduler/test_documentation.py -->\n", "<!-- end of keys -->\n"
    assert text[text.index(begin) + len(begin) : text.index(end)] == keys_table()


@pytest.mark.parametrize("kind", [FILTER, WEIGHER])
def test_documentation_has_all_of_them(kind: str) -> None:
    text = DOCUMENT.read_text()
    begin = f"<!-- {kind}s: made by tests/scheduler/test_documentation.py -->\n"
    end = f"<!-- end of {kind}s -->\n"
    assert text[text.index(begin) + len(begin) : text.index(end)] == table(kind)
