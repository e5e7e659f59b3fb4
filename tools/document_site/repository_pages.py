"""The pages of the repository: their places in the site, and links between them.

A page reads well where the repository is shown, and its links lead to files. In the site ``docs`` is the
root, ``README.md`` of a folder is its index, and a link to a file that the site does not have is its text
alone.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from document_site.markdown import SitePage

DOCS: Final = PurePosixPath("docs")

OF_PROJECT: Final = {"README.md": "project.md", "CHANGELOG.md": "changes.md", "SECURITY.md": "security.md"}
"""The pages of the repository that are not in ``docs`` -> their places in the site."""

_FENCED = re.compile(r"^( *)(```+|~~~+)[^\n]*\n.*?^\1\2[ \t]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\[\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")


def repository_pages(root: Path) -> Iterator[SitePage]:
    """Yield the pages of a repository, with the links of the site."""
    paths = [root / name for name in OF_PROJECT]
    for path in [*paths, *sorted((root / DOCS).rglob("*.md"))]:
        source = PurePosixPath(path.relative_to(root).as_posix())
        place = place_of(root, source)
        assert place is not None, f"{source} is no page"
        yield SitePage(str(place), with_links_of_site(root, source, path.read_text()))


def repository_files(root: Path) -> Iterator[tuple[PurePosixPath, Path]]:
    """Yield the files of ``docs`` that are no pages, such as pictures: their places in the site, and they."""
    for path in sorted((root / DOCS).rglob("*")):
        if path.is_file() and path.suffix != ".md":
            yield PurePosixPath(path.relative_to(root / DOCS).as_posix()), path


def place_of(root: Path, source: PurePosixPath) -> PurePosixPath | None:
    """Return the place in the site of a file or folder of the repository; None if the site has it not."""
    if (root / source).is_dir():
        index = source / "README.md"
        return place_of(root, index) if (root / index).is_file() else None
    if str(source) in OF_PROJECT:
        return PurePosixPath(OF_PROJECT[str(source)])
    if not source.is_relative_to(DOCS) or not (root / source).is_file():
        return None
    place = source.relative_to(DOCS)
    return place.with_name("index.md") if place.name == "README.md" else place


def with_links_of_site(root: Path, source: PurePosixPath, text: str) -> str:
    """Return the text of a page whose links lead to places of the site. Blocks of code stay as they are."""
    parts, end = [], 0
    for found in _FENCED.finditer(text):
        parts += [_relinked(root, source, text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, _relinked(root, source, text[end:])])


def _relinked(root: Path, source: PurePosixPath, prose: str) -> str:
    here = place_of(root, source)
    assert here is not None

    def relink(found: re.Match[str]) -> str:
        mark, words, target, fragment = found[1], found[2], found[3], found[4] or ""
        if not target or ":" in target:
            return found[0]
        place = place_of(root, PurePosixPath(os.path.normpath(source.parent / target)))
        if place is None:
            return words
        return f"{mark}[{words}]({os.path.relpath(place, here.parent)}{fragment})"

    return _LINK.sub(relink, prose)
