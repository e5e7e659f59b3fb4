"""Reports in a Markdown page: each is a table between a comment with its name and an end comment."""

import re
from typing import Final

from roost.bench.errors import BenchError
from roost.bench.report import BenchReport, format_cell

_BEGIN: Final = "<!-- bench {name} -->"
_END: Final = "<!-- /bench -->"
_NAMES: Final = re.compile(r"<!-- bench ([\w-]+) -->")


def report_names(page: str) -> list[str]:
    """Return the names of the reports that a page has comments for, in order."""
    return _NAMES.findall(page)


def replace_report(page: str, name: str, block: str) -> str:
    """Return the page with ``block`` between the comments of the report ``name``.

    Raises:
        BenchError: The page has no such comments.
    """
    begin = _BEGIN.format(name=name)
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(_END)
    if not found or not ended:
        raise BenchError(f"the page has no room for {name}: it needs a line {begin} and, after it, {_END}")
    return f"{before}{begin}\n{block}\n{_END}{after}"


def render_report(found: BenchReport) -> str:
    """Return a report as a table, with settings, notes and failed checks below it."""
    columns = found.visible_columns()
    lines = [
        "| " + " | ".join(column.title for column in columns) + " |",
        "|" + "---|" * len(columns),
        *("| " + " | ".join(format_cell(row, column) for column in columns) + " |" for row in found.rows),
        "",
        "*" + ", ".join(f"{name} {value}" for name, value in found.settings.items()) + "*",
    ]
    for line in (*found.notes, *(f"**Wrong: {each}**" for each in found.wrong)):
        lines += ["", line]
    return "\n".join(lines)
