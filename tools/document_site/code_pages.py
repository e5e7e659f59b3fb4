"""All pages that are made from the code."""

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


def code_pages() -> Iterator[SitePage]:
    """Yield the pages that are made from the code."""
    yield from command_pages.command_pages()
    yield from option_pages.option_pages()
    yield from policy_pages.policy_pages()
    yield from plugin_pages.plugin_pages()
    yield from api_pages.api_pages()
    yield from python_pages.python_pages()
