"""Manual pages and shell completion cover every command and every option."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from roost.cli.completion import SHELLS, VARIABLE
from roost.cli.main import roost_command
from support.processes import ROOST, run_roost
from support.waiting import patience

GROFF = shutil.which("groff")


def commands(
    command: click.Command = roost_command, path: tuple[str, ...] = ("roost",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, (*path, name))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The text of each page, by the name of its file."""
    folder = tmp_path_factory.mktemp("man") / "man1"
    done = run_roost("man", folder)
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_each_command_has_a_page(pages: dict[str, str]) -> None:
    assert set(pages) == {f"{'-'.join(path)}.1" for path, _ in commands()}


def test_each_page_has_every_option_of_its_command_with_its_help(pages: dict[str, str]) -> None:
    for path, command in commands():
        page = pages[f"{'-'.join(path)}.1"]
        options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
        for option in options:
            for name in (*option.opts, *option.secondary_opts):
                assert name.replace("-", r"\-") in page, f"{path}: {name}"
            words = (option.help or "").split()
            assert " ".join(words[:4]).replace("-", r"\-").replace("'", r"\(aq") in page, f"{path}: {words}"
        assert ".SH SYNOPSIS" in page and ".SH DESCRIPTION" in page
        assert "xit status" in page or ".SH EXIT STATUS" in page


def test_a_group_refers_to_its_commands_and_back(pages: dict[str, str]) -> None:
    assert r"\fBroost\-db\-verify\fR(1)" in pages["roost-db.1"]
    assert r"\fBroost\-db\fR(1)" in pages["roost-db-verify.1"]


@pytest.mark.skipif(GROFF is None, reason="groff is not installed")
def test_groff_formats_each_page_without_a_warning(pages: dict[str, str]) -> None:
    assert GROFF is not None
    for name, page in pages.items():
        done = subprocess.run(
            [GROFF, "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True, check=True
        )
        assert done.stderr == "", f"{name}: {done.stderr}"
        assert name.removesuffix(".1").upper() in done.stdout


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run_roost("man", tmp_path / "file" / "man1")
    assert done.returncode == 2
    assert done.stderr.startswith("roost: cannot write the manual pages to") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_a_shell_asks_roost(shell: str) -> None:
    done = run_roost("completion", shell)
    assert done.returncode == 0, done.stderr
    assert f"{VARIABLE}={shell}_complete" in done.stdout


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("roost ", {"serve", "db", "man"}),
        ("roost db ", {"upgrade", "verify", "trim"}),
        ("roost serve --ins", {"--insecure-no-authentication"}),
        ("roost completion ", set(SHELLS)),
    ],
)
def test_bash_completes(typed: str, expected: set[str], tmp_path: Path) -> None:
    """The script is loaded by bash, and its function is called as bash calls it for a line and a tab."""
    script = (
        f"source <({ROOST} completion bash); COMP_WORDS=({typed}); "
        f'[[ "{typed}" == *" " ]] && COMP_WORDS+=(""); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); '
        'compopt() { :; }; _roost_completion roost; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environment = {**os.environ, "PATH": f"{ROOST.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        timeout=patience(60),
        check=True,
    )
    assert expected <= set(done.stdout.split())
