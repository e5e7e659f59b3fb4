"""All pages that are made from the code."""

import re
from collections.abc import Iterator
from typing import Final

from document_site import api_pages, command_pages, option_pages, plugin_pages, policy_pages, python_pages
from document_site.markdown import SitePage
from roost.scheduler.plugins.plugin_class import FILTER, WEIGHER

IN_CONTENTS: Final = {
    "Commands": f"{command_pages.FOLDER}/index.md",
    "Options": option_pages.PATH,
    "Policies": policy_pages.PATH,
    "Filters": plugin_pages.PATHS[FILTER],
    "Weighers": plugin_pages.PATHS[WEIGHER],
    "HTTP APIs": f"{api_pages.FOLDER}/index.md",
    "Python": f"{python_pages.FOLDER}/index.md",
}
"""Title and path of the pages that a page of the repository has among its contents."""

IN_PLACE_OF: Final = {"options": f"[Options]({option_pages.PATH}) has them all."}
"""Name of a marked part of a page of the repository -> the site's text in its place."""

_MARKED = re.compile(
    r"^<!-- (?P<name>\w+): [^\n]*-->\n.*?^<!-- end of (?P=name) -->$", re.MULTILINE | re.DOTALL
)


def with_code_pages(text: str) -> str:
    """Return the text of a page of the repository with links where pages of the site have the same."""
    return _MARKED.sub(lambda found: IN_PLACE_OF.get(found["name"], found[0]), text)


def code_pages() -> Iterator[SitePage]:
    """Yield the pages that are made from the code."""
    yield from command_pages.command_pages()
    yield from option_pages.option_pages()
    yield from policy_pages.policy_pages()
    yield from plugin_pages.plugin_pages()
    yield from api_pages.api_pages()
    yield from python_pages.python_pages()
