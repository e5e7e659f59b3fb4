"""Pieces of Markdown, as MyST reads it."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_CODE = re.compile(r"(`+)(?:.+?)(?<!`)\1(?!`)", re.DOTALL)
_SPECIAL = re.compile(r"[\\<>*\[\]{}$]")


class SitePage(NamedTuple):
    """A page of the site: its path, such as ``guides/index.md``, and its text."""

    path: str
    text: str


def code(value: str) -> str:
    """Return a value as code."""
    if "`" not in value:
        return f"`{value}`"
    longest = max(map(len, re.findall("`+", value)))
    return f"{'`' * (longest + 1)} {value} {'`' * (longest + 1)}"


def plain(text: str) -> str:
    """Return text in which only code between backticks has a meaning."""
    parts, end = [], 0
    for found in _CODE.finditer(text):
        parts += [_SPECIAL.sub(r"\\\g<0>", text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, _SPECIAL.sub(r"\\\g<0>", text[end:])])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def definitions(entries: Iterable[tuple[str, str]]) -> str:
    """Return a list of terms, each with a paragraph that defines it."""
    return "".join(f"{term}\n: {' '.join(text.split())}\n\n" for term, text in entries)


def block(text: str, language: str = "text") -> str:
    """Return a block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def heading(level: int, title: str, label: str | None = None) -> str:
    """Return a heading. ``label``: the name by which any page links to it, as in ``[](#label)``."""
    target = "" if label is None else f"({label})=\n"
    return f"{target}{'#' * level} {title}\n"


def toctree(entries: Iterable[tuple[str, str]]) -> str:
    """Return a hidden table of contents of pages. Entries: the title and the path of each."""
    lines = "".join(f"{title} <{path}>\n" for title, path in entries)
    return f"```{{toctree}}\n:hidden:\n:titlesonly:\n\n{lines}```\n"


def label_of(*words: str) -> str:
    """Return the label of a thing with these names."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
