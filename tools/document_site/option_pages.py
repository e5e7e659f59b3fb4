"""The options of configuration files, by group."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from document_site.markdown import SitePage, code, definitions, heading, label_of, plain
from roost.cli.config import Described, describe_options
from roost.cli.configuration import READ_GROUPS
from roost.nova.options import NovaOptions
from roost.process.options import options_by_group

PATH = "reference/options.md"

_OPENING = """\
`roost config` prints the same as a table, `roost config sample` as a file to fill in, with the options of
Keystone's libraries too. [Configuration](../configuration.md) says where options come from.
"""


_NOVA = """\
`roost nova-scheduler` reads these of Nova's own options too, and those of filters and weighers above
([guide](../guides/nova.md)).
"""


def option_pages() -> Iterator[SitePage]:
    """Yield the page of all options."""
    sections = [
        _section(group, [*each]) for group, each in groupby(describe_options(), lambda each: each.group)
    ]
    yield SitePage(PATH, "\n".join((heading(1, "Options"), _OPENING, *sections, _of_nova())))


def _of_nova() -> str:
    described = [
        (code(f"[{each.group}] {each.option}"), _about(each))
        for each in describe_options(options_by_group(NovaOptions))
    ]
    return "\n".join((heading(2, "Of nova.conf"), _NOVA, definitions(described)))


def link_to(group: str, option: str) -> str:
    """Return a link to an option."""
    shown = option if group == "filter_scheduler" else f"[{group}] {option}"
    return f"[{code(shown)}](#{label_of('option', group, option)})"


def _section(group: str, options: Sequence[Described]) -> str:
    readers = [f"`roost {command}`" for command, groups in READ_GROUPS.items() if group in groups]
    return "\n".join(
        (
            heading(2, code(f"[{group}]"), label_of("options", group)),
            f"Read by {', '.join(readers)}.\n" if readers else "",
            definitions(map(_definition, options)),
        )
    )


def _definition(option: Described) -> tuple[str, str]:
    return f"{code(option.option)}{{#{label_of('option', option.group, option.option)}}}", _about(option)


def _about(option: Described) -> str:
    default = f", by default {code(option.default)}" if option.default else ""
    variable = f"OS_{option.group}__{option.option}".upper()
    return f"{option.type}{default}; {code(variable)}. {plain(option.help)}"
