"""The documentation names only files, types, commands and links that exist."""

import re
from functools import cache
from pathlib import Path

import pytest

from roost.cli.main import roost_command

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/roost"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())

CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"[\w.-]+(/[\w.*-]+)*(\.(py|md|toml|json|yaml|lock)|/)|[\w-]+(/[\w-]+)+")
ENTRY = re.compile(r"\| (?P<term>[^|]+) \| (?P<meaning>[^|]+) \| (?P<where>[^|]+) \| (?P<old>[^|]*)\|")


def text_of(page: Path) -> str:
    """The text of a page without its blocks of code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return "\n".join(line for line in text.splitlines() if not line.startswith("    "))


@by_page
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target in LINK.findall(text_of(page)):
        if target.startswith("http"):
            continue
        name, _, heading = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{page.name} links to {target}"
        if heading:
            titles = re.findall(r"^#+ (.*)$", file.read_text(), flags=re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
            assert heading in anchors, f"{page.name} links to {target}"


@by_page
def test_commands_exist(page: Path) -> None:
    for code in CODE.findall(page.read_text()):
        words = code.split()
        if len(words) < 2 or words[0] != "roost" or not re.fullmatch(r"[a-z][a-z-]*", words[1]):
            continue
        command = roost_command.get_command(None, words[1])  # type: ignore[arg-type]
        assert command is not None, f"{page.name}: {code}"
        subcommands = getattr(command, "commands", None)
        if subcommands and len(words) > 2 and re.fullmatch(r"[a-z-]+", words[2]):
            assert words[2] in subcommands, f"{page.name}: {code}"


@cache
def folders() -> list[Path]:
    """Where a relative path of the documentation may start."""
    return [ROOT, SOURCE, ROOT / "tests", ROOT / "docs"]


ROOMS = {path.name for path in SOURCE.iterdir()} | {path.name for path in ROOT.iterdir()}


@by_page
def test_files_exist(page: Path) -> None:
    for code in CODE.findall(text_of(page)):
        if not PATH.fullmatch(code) or code.startswith("/"):
            continue
        # Paths of this project: they start in one of its folders. NAME stands for any name.
        first = code.split("/")[0]
        if first not in ROOMS and not (code.endswith(".py") and "/" in code):
            continue
        pattern = code.replace("NAME", "*").rstrip("/")
        assert any(list(folder.glob(pattern)) for folder in folders()), f"{page.name}: {code}"


@cache
def texts() -> tuple[str, ...]:
    """All modules of the package, of the tests and of the tools."""
    folders = (SOURCE, ROOT / "tests", ROOT / "tools")
    return tuple(file.read_text() for folder in folders for file in folder.rglob("*.py"))


@cache
def words() -> frozenset[str]:
    """All names in the code."""
    return frozenset(word for text in texts() for word in re.findall(r"\w+", text))


@cache
def homes_of(owner: str) -> list[str]:
    """The sources that define a class."""
    return [text for text in texts() if re.search(rf"^class {owner}\b", text, re.MULTILINE)]


@by_page
def test_types_and_functions_exist(page: Path) -> None:
    if page.name == "configuration.md":
        return  # generated, with the options that libraries define
    for code in CODE.findall(text_of(page)):
        name = code.removesuffix("()")
        if not re.fullmatch(r"[A-Z][a-z]\w*(\.\w+)*|[a-z]+(_[a-z]+)+(\.\w+)*", name):
            continue
        missing = [part for part in name.split(".") if part not in words()]
        assert not missing, f"{page.name}: {code}"
        owner, _, member = name.partition(".")
        if member and (homes := homes_of(owner)):
            assert any(re.search(rf"\b{member}\b", text) for text in homes), f"{page.name}: {code}"


def entries() -> list[re.Match[str]]:
    lines = (ROOT / "docs/glossary.md").read_text().splitlines()
    return [found for found in map(ENTRY.fullmatch, lines) if found and found["term"] not in ("term", "---")]


def test_the_glossary_is_in_alphabetical_order() -> None:
    terms = [entry["term"].casefold() for entry in entries()]
    assert len(terms) > 50
    assert terms == sorted(terms)


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry["term"])
def test_the_glossary_says_where_things_are(entry: re.Match[str]) -> None:
    places = CODE.findall(entry["where"])
    assert places
    for place in places:
        file, _, name = place.partition(":")
        path = SOURCE / file
        assert path.exists(), f"{entry['term']}: {place}"
        if name:
            defined = re.compile(rf"^(class|def|async def) {name}\b|^{name}\b.* = ", re.MULTILINE)
            assert defined.search(path.read_text()), f"{entry['term']}: {place}"
