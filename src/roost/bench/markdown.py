"""Reports as tables in a page: each between two comments that name it, replaced by the next one."""

import re
from typing import Final

from roost.bench.errors import BenchError
from roost.bench.report import Report, cell

_BEGIN: Final = "<!-- bench {name} -->"
_END: Final = "<!-- /bench -->"
_NAMES: Final = re.compile(r"<!-- bench ([\w-]+) -->")


def names_in(page: str) -> list[str]:
    """The reports that a page has room for, in order."""
    return _NAMES.findall(page)


def replaced(page: str, name: str, block: str) -> str:
    """The page with another text between the comments that name ``name``. Raises `BenchError`."""
    begin = _BEGIN.format(name=name)
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(_END)
    if not found or not ended:
        raise BenchError(f"the page has no room for {name}: it needs a line {begin} and, after it, {_END}")
    return f"{before}{begin}\n{block}\n{_END}{after}"


def block(found: Report) -> str:
    """A report as a table, with the settings and notes under it."""
    shown = found.shown()
    lines = [
        "| " + " | ".join(column.title for column in shown) + " |",
        "|" + "---|" * len(shown),
        *("| " + " | ".join(cell(row, column) for column in shown) + " |" for row in found.rows),
        "",
        "*" + ", ".join(f"{name} {value}" for name, value in found.settings.items()) + "*",
    ]
    for line in (*found.notes, *(f"**Wrong: {each}**" for each in found.wrong)):
        lines += ["", line]
    return "\n".join(lines)
