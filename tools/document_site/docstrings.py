"""Docstrings as Markdown."""

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Final

from document_site.markdown import block, plain

_SECTIONS: Final = ("Args", "Attributes", "Raises", "Returns", "Yields")
_TERM = re.compile(r"^(?P<term>[\w*.]+): (?P<text>.*)", re.DOTALL)


def as_markdown(docstring: str) -> str:
    """Return a docstring as Markdown.

    Indented lines are code. A section such as ``Raises:`` is a list. A heading that ends with two colons
    ends with one.
    """
    return "\n\n".join(_paragraphs(inspect.cleandoc(docstring)))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text):
        first, _, rest = paragraph.partition("\n")
        if first.rstrip(":") in _SECTIONS and first.endswith(":"):
            yield f"**{first}**"
            yield "\n".join(_items(textwrap.dedent(rest)))
        elif paragraph.startswith("    "):
            yield block(textwrap.dedent(paragraph))
        elif re.match(r"[-*] ", paragraph):
            yield plain(paragraph).replace("\\*", "*", 1) if paragraph[0] == "*" else plain(paragraph)
        else:
            yield plain(" ".join(paragraph.split())).replace("::", ":", paragraph.endswith("::"))


def _items(text: str) -> Iterator[str]:
    for item in re.split(r"\n(?! )", text):
        words = " ".join(item.split())
        found = _TERM.match(words)
        yield f"- `{found['term']}`: {plain(found['text'])}" if found else f"- {plain(words)}"
