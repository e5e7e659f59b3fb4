"""Changes of Sphinx's behaviour for this site."""

from functools import cache, partial
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import GoogleDocstring
from sphinx.search.en import SearchEnglish

_OF_FIELDS = ("attribute", "data", "property")
"""Kinds of objects whose docstring is sentences alone."""

_DEFAULTS: Any = Config()
"""The options of napoleon."""


class RememberedEnglish(SearchEnglish):
    """English for the index of the search: the stem of a word is computed once, and not for each page."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._stem = cache(super().stem)

    def stem(self, word: str) -> str:
        return self._stem(word)


def setup(app: Sphinx) -> None:
    """Connect the changes."""
    app.add_search_language(RememberedEnglish)
    app.connect("autodoc-process-docstring", read_sections)
    app.connect("autodoc-process-signature", write_factories)
    app.connect("doctree-read", set_dashes)
    # Before that of the theme.
    app.connect("html-page-context", show_one_branch, priority=100)


def read_sections(
    app: Sphinx, what: Any, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Read sections such as ``Raises:`` in docstrings.

    The extension napoleon would take the words before a colon in an attribute's docstring for its type.
    """
    if what not in _OF_FIELDS:
        lines[:] = GoogleDocstring(lines, _DEFAULTS, app, what, name, value, options).lines()


def write_factories(
    app: Sphinx,
    what: str,
    name: str,
    value: object,
    options: object,
    arguments: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """Write defaults that a function makes as three dots: Sphinx cannot read ``<factory>``.

    A protocol has no arguments: it is not called.
    """
    if getattr(value, "_is_protocol", False):
        return None, None
    return (None if arguments is None else arguments.replace("<factory>", "...")), returned


def set_dashes(app: Sphinx, tree: nodes.document) -> None:
    """Set the two hyphens that Sphinx writes between a parameter and its text as a dash.

    The option for typographic characters would set those of command line options too.
    """
    for text in [*tree.findall(nodes.Text)]:
        if text.astext() == " -- ":
            text.parent.replace(text, nodes.Text(" \N{EN DASH} "))


def show_one_branch(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Have the side bar show the branch of a page alone: that of all pages took a third of the build."""
    context["toctree"] = partial(_collapsed, context["toctree"])


def _collapsed(toctree: Any, **options: Any) -> Any:
    return toctree(**{**options, "collapse": True})
