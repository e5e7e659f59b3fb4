"""Builds the site of documents: ``python -m document_site [FOLDER]``, by default into ``build/docs``.

Warnings are errors. It needs no network. Exit status: 0 done, 1 there were warnings, 2 could not run.
"""

import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import build_main

from document_site.code_pages import IN_CONTENTS, code_pages, with_code_pages
from document_site.contents import with_contents
from document_site.repository_pages import repository_files, repository_pages

ROOT = Path(__file__).parents[2]


def write_pages(root: Path, folder: Path) -> None:
    """Write all pages and files of the site into an empty folder, for Sphinx."""
    texts = dict(code_pages())
    for path, text in repository_pages(root):
        texts[path] = with_contents(path, with_code_pages(text), IN_CONTENTS)
    files = {place: text.encode() for place, text in texts.items()}
    files |= {str(place): path.read_bytes() for place, path in repository_files(root)}
    for place, content in files.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def main(folder: Path) -> int:
    """Build the site into a folder, and return the exit status."""
    pages, html, doctrees = folder / "pages", folder / "html", folder / "doctrees"
    for each in (pages, html, doctrees):
        shutil.rmtree(each, ignore_errors=True)
    write_pages(ROOT, pages)
    arguments = ["--quiet", "--fail-on-warning", "--nitpicky", "--jobs", "auto"]
    configured = ["--conf-dir", str(Path(__file__).parent), "--doctree-dir", str(doctrees)]
    status = build_main([*arguments, *configured, str(pages), str(html)])
    if status == 0:
        print(f"the site of documents is {html / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs"))
