"""The site of documents is built without a warning, and has a page for everything in the code."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from documents.built import BuiltSite
from roost.cli.config import describe_options
from roost.cli.main import roost_command
from support.waiting import patience

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> BuiltSite:
    """The site, built once for all tests by the command of `make docs`. A warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "document_site", folder],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tools")},
        capture_output=True,
        text=True,
        timeout=patience(300),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return BuiltSite(folder / "html")


def test_each_link_leads_to_a_page_and_a_heading(site: BuiltSite) -> None:
    assert len(site.pages) > 50
    assert sorted(site.broken_links()) == []


def test_a_page_loads_nothing_from_another_host(site: BuiltSite) -> None:
    loaded = {address for page in site.pages.values() for address in page.loaded}
    assert any("site.css" in address for address in loaded)
    assert {address for address in loaded if re.match(r"[a-z+]*:?//", address)} == set()
    for sheet in site.folder.rglob("*.css"):
        addresses = re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')]+)", sheet.read_text())
        assert [each for each in addresses if re.match(r"(?!data:)[a-z+]*:?//", each)] == [], sheet.name


def test_nothing_of_this_machine_is_in_a_page(site: BuiltSite) -> None:
    for name, page in site.pages.items():
        assert str(ROOT) not in page.text, name
        assert not re.search(r" at 0x[0-9a-f]{6,}", page.text), name


def test_each_page_of_the_repository_is_in_the_site(site: BuiltSite) -> None:
    for path in (ROOT / "docs").rglob("*.md"):
        page = path.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert re.sub(r"README\.html$", "index.html", page) in site.pages
    assert {"project.html", "changes.html", "security.html"} <= set(site.pages)


def commands(
    command: click.Command = roost_command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if path:
        yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, (*path, name))


def test_each_command_is_described_with_its_options(site: BuiltSite) -> None:
    for path, command in commands():
        page = site.pages[f"reference/commands/{path[0]}.html"]
        assert f"command-roost-{'-'.join(path)}" in page.anchors
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert all(name in page.text for name in option.opts), f"{path}: {option.opts}"


def test_each_option_has_an_anchor(site: BuiltSite) -> None:
    page = site.pages["reference/options.html"]
    for each in describe_options():
        assert f"option-{each.group}-{each.option}".lower().replace("_", "-") in page.anchors


def test_the_search_knows_words_of_all_kinds_of_pages(site: BuiltSite) -> None:
    index = (site.folder / "searchindex.js").read_text()
    assert '"reference/commands/serve"' in index and '"two-ideas"' in index and "altern" in index
