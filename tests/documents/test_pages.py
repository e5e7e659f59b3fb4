"""Pages of the repository in the site: places, links and tables of contents."""

from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from document_site.api_schemas import SchemaTexts
from document_site.code_pages import with_code_pages
from document_site.contents import with_contents
from document_site.docstrings import as_markdown
from document_site.markdown import code, plain, table
from document_site.repository_pages import place_of, with_links_of_site


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small repository."""
    for name in (
        "README.md",
        "src/code.py",
        "docs/README.md",
        "docs/a.md",
        "docs/adr/README.md",
        "docs/x.png",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (tmp_path / "docs/empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("README.md", "project.md"),
        ("docs/README.md", "index.md"),
        ("docs/a.md", "a.md"),
        ("docs/adr/README.md", "adr/index.md"),
        ("docs/adr", "adr/index.md"),
        ("docs/x.png", "x.png"),
        ("docs/empty", None),
        ("docs/missing.md", None),
        ("src/code.py", None),
    ],
)
def test_a_file_has_its_place(root: Path, source: str, place: str | None) -> None:
    found = place_of(root, PurePosixPath(source))
    assert (None if found is None else str(found)) == place


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("README.md", "[a](docs/a.md#b)", "[a](a.md#b)"),
        ("README.md", "![a picture](docs/x.png)", "![a picture](x.png)"),
        ("docs/a.md", "[the\nproject](../README.md)", "[the\nproject](project.md)"),
        ("docs/a.md", "[decisions](adr) [b](#b)", "[decisions](adr/index.md) [b](#b)"),
        ("docs/adr/README.md", "[a](../a.md)", "[a](../a.md)"),
        ("docs/a.md", "[`code`](../src/code.py) in [web](https://a.b)", "`code` in [web](https://a.b)"),
        ("docs/a.md", "```\n[a](adr)\n```\n[a](adr)", "```\n[a](adr)\n```\n[a](adr/index.md)"),
    ],
)
def test_links_lead_to_places(root: Path, source: str, text: str, expected: str) -> None:
    assert with_links_of_site(root, PurePosixPath(source), text) == expected


def test_the_first_link_of_each_row_is_an_entry() -> None:
    text = "<!-- contents -->\n\n| [A](a.md) | [b](b.md) |\n| Made | from code |\n\n- [`C`](../c.md): c\n"
    page = with_contents("folder/index.md", text, {"Made": "made/index.md"})
    assert "| [Made](../made/index.md) | from code |" in page
    tree = page[page.index("```{toctree}") :]
    assert tree.splitlines()[4:-1] == ["A <a>", "Made <../made/index>", "C <../c>"]
    assert with_contents("page.md", text.removeprefix("<!-- contents -->\n"), {}).count("toctree") == 0


def test_the_table_of_options_is_a_link_in_the_site() -> None:
    text = "a\n<!-- options: made by x -->\n| b |\n<!-- end of options -->\nc\n"
    assert with_code_pages(text) == "a\n[Options](reference/options.md) has them all.\nc\n"
    other = text.replace("options", "keys")
    assert with_code_pages(other) == other


def test_text_has_no_meaning_but_code() -> None:
    assert plain("a <b> *c* `<d>*` [e]") == r"a \<b\> \*c\* `<d>*` \[e\]"
    assert code("a") == "`a`" and code("a`b") == "`` a`b ``"
    assert table(("a", "b"), [("c|d", "e\nf")]) == "| a | b |\n| --- | --- |\n| c\\|d | e f |\n"


def test_a_docstring_is_markdown() -> None:
    text = """The first
    line with ``code`` and <words>.

    Example::

        run(it)

    Raises:
        ValueError: it is
            wrong.
    """
    assert as_markdown(text) == (
        "The first line with ``code`` and \\<words\\>.\n\nExample:\n\n```text\nrun(it)\n```\n\n\n"
        "**Raises:**\n\n- `ValueError`: it is wrong."
    )


@pytest.mark.parametrize(
    ("schema", "kind", "text"),
    [
        (
            {"type": "integer", "minimum": 1, "maximum": 1000, "default": 10},
            "integer",
            "1 to 1,000. By default `10`.",
        ),
        ({"$ref": "#/components/schemas/Thing"}, "[`Thing`](#schema-s-thing)", ""),
        (
            {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]},
            "string or null",
            "At most 3 characters.",
        ),
        ({"enum": ["a", "b"], "description": "One of *two*"}, "`a` or `b`", r"One of \*two\*."),
        (
            {"type": "array", "items": {"type": "string", "pattern": "^a"}},
            "list of string",
            "Each matches `^a`.",
        ),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "map of number", ""),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"const": 1}]}, "list of string, `1`", ""),
        ({"type": "string", "format": "uuid"}, "uuid", ""),
        ({}, "any value", ""),
    ],
)
def test_a_schema_is_told_in_words(schema: dict[str, Any], kind: str, text: str) -> None:
    texts = SchemaTexts("s")
    assert texts.kind(schema) == kind
    assert texts.text(schema) == text
