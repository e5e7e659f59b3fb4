"""The four rules of the project's language: a stranger reads names and first lines without a dictionary.

`docs/development.md` has them in words. Exceptions are listed here, each with its reason.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "roost"

NOUNS = {
    "anti_stacking",
    "building",
    "cleaning",
    "finding",
    "outstanding",
    "packing",
    "pinning",
    "splitting",
    "timing",
}
"""Module names that end like a verb and are nouns of the field, or adjectives."""

RIDDLES = ("What", "Who", "Whom", "Whose", "Those", "How", "Which", "Whether")
"""First words of sentences whose subject comes last."""

WIRE = ("CreateProvider", "DeleteProvider", "Reshape", "SetAggregates", "SetInventories", "SetTraits")
"""Messages of the agents' protocol that are named in it, and the ledger's commands of the same names."""

CATEGORIES = ("BadRequest", "Conflict", "Forbidden", "NotFound")
"""Categories of refused commands, and the HTTP errors that they become."""

TWICE = {*WIRE, *CATEGORIES}
"""Public classes of equal names."""


def modules() -> Iterator[Path]:
    """All modules but migrations, whose names are revisions."""
    return (path for path in sorted(SOURCE.rglob("*.py")) if "migrations" not in path.parts)


def packages() -> Iterator[Path]:
    return (path.parent for path in modules() if path.name == "__init__.py")


def relative(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and the text of each docstring: of modules, classes, functions, and constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text
        body = getattr(node, "body", None)
        for before, after in pairwise(body if isinstance(body, list) else ()):
            if (
                isinstance(before, ast.Assign | ast.AnnAssign)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            ):
                yield after.lineno, after.value.value


def test_a_module_is_the_noun_that_it_holds() -> None:
    verbs = [relative(path) for path in modules() if path.stem.endswith("ing") and path.stem not in NOUNS]
    assert not verbs


def test_no_docstring_begins_with_a_riddle() -> None:
    found = [
        f"{relative(path)}:{line}: {text.splitlines()[0]}"
        for path in modules()
        for line, text in docstrings(ast.parse(path.read_text()))
        if re.match(rf"\s*({'|'.join(RIDDLES)})\b(?!-)", text)
    ]
    assert not found


def test_a_public_class_name_means_one_thing() -> None:
    where: defaultdict[str, list[str]] = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(relative(path))
    twice = {name: files for name, files in where.items() if len(files) > 1}
    assert {name: files for name, files in twice.items() if name not in TWICE} == {}
    assert twice.keys() >= TWICE, "an exception that is none any more"


@pytest.mark.parametrize("package", [pytest.param(each, id=relative(each)) for each in packages()])
def test_the_map_of_a_folder_names_each_module_and_no_other(package: Path) -> None:
    there = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    there |= {path.parent.name for path in package.glob("*/__init__.py")} - {"migrations"}
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    if len(there) > 1:
        assert {name for name in there if not re.search(rf"(?<![\w.]){name}\b", text)} == set()
    lines = re.findall(r"(?m)^ {0,4}([a-z_0-9]+/?(?:, [a-z_0-9]+/?)*) {2,}\S", text)
    named = {name.strip().rstrip("/") for line in lines for name in line.split(",")}
    assert named <= there
