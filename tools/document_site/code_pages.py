"""All pages that are made from the code."""

from collections.abc import Iterator
from typing import Final

from document_site import command_pages, option_pages
from document_site.markdown import SitePage

IN_CONTENTS: Final = {
    "Commands": f"{command_pages.FOLDER}/index.md",
    "Options": option_pages.PATH,
}
"""Title and path of the pages that a page of the repository has among its contents."""


def code_pages() -> Iterator[SitePage]:
    """Yield the pages that are made from the code."""
    yield from command_pages.command_pages()
    yield from option_pages.option_pages()
