"""The site of documents is built without a warning, and has a page for everything in the code."""

import ast
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from document_site.api_services import ApiService, api_services, rule_sets
from document_site.markdown import label_of
from document_site.python_pages import SUBJECTS
from documents.built import BuiltSite
from roost.cli.config import describe_options
from roost.cli.main import roost_command
from roost.nova.options import NovaOptions
from roost.process.options import options_by_group
from roost.scheduler.plugins.plugin_class import FILTER, WEIGHER
from roost.scheduler.plugins.plugin_names import built_ins
from roost.web.policy import Rule
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
    for each in describe_options(options_by_group(NovaOptions)):
        assert f"[{each.group}] {each.option}" in page.text


@pytest.mark.parametrize("service", api_services(), ids=lambda service: service.name)
def test_each_operation_and_type_of_a_service_is_described(site: BuiltSite, service: ApiService) -> None:
    page = site.pages[f"reference/apis/{service.name}.html"]
    assert service.operations
    for operation in service.operations:
        assert service.label(operation) in page.anchors, f"{operation.method} {operation.path}"
        if isinstance(operation.rule, Rule):
            assert operation.rule.name in page.text
    for name in service.document["components"]["schemas"]:
        assert label_of("schema", service.name, name) in page.anchors, name
    assert any(link.endswith(f"/{service.name}.json") for link in page.links)


def test_each_policy_rule_is_there_with_its_default_and_its_operations(site: BuiltSite) -> None:
    page = site.pages["reference/policies.html"]
    for rules in rule_sets():
        for rule in rules.rules:
            assert label_of("rule", rule.name) in page.anchors
            assert rule.check_str in page.text
    links = {link.partition("#")[2] for link in page.links}
    for service in api_services():
        guarded = {service.label(each) for each in service.operations if isinstance(each.rule, Rule)}
        assert guarded <= links


def test_the_rules_of_all_services_are_there() -> None:
    """Each module with default rules is one of a set."""
    modules = {
        path.relative_to(ROOT / "src").with_suffix("").as_posix().replace("/", ".")
        for path in (ROOT / "src/roost").rglob("*.py")
        if re.search(r"^def default_rules\(", path.read_text(), re.MULTILINE)
    }
    known = {importlib.import_module(module).default_rules for module in modules}
    named = {rule.name for default in known for rule in default()}
    assert named == {rule.name for rules in rule_sets() for rule in rules.rules}


@pytest.mark.parametrize("kind", [FILTER, WEIGHER])
def test_each_plugin_is_described_with_its_options(site: BuiltSite, kind: str) -> None:
    page = site.pages[f"reference/{kind}s.html"]
    for each in built_ins(kind):
        assert label_of("plugin", each.name) in page.anchors
        assert all(option.dest in page.text for option in (each.options.options if each.options else ()))
        assert all(key.shown in page.text for key in each.reads)


def test_each_name_that_the_readme_imports_is_described(site: BuiltSite) -> None:
    [program] = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    imported = [
        f"{node.module}.{each.name}"
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("roost")
        for each in node.names
    ]
    assert len(imported) > 10
    described = {name for subject in SUBJECTS for name in subject.names}
    assert set(imported) <= described
    for subject in SUBJECTS:
        page = site.pages[f"reference/python/{subject.name}.html"]
        assert set(subject.names) <= page.anchors, subject.name


def test_the_search_knows_words_of_all_kinds_of_pages(site: BuiltSite) -> None:
    index = (site.folder / "searchindex.js").read_text()
    assert '"reference/commands/serve"' in index and '"two-ideas"' in index and "altern" in index
