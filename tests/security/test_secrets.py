"""Passwords and forged lines reach no log and no error text. For tokens see
`tests/web/auth/test_secrets.py`."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.serving import Serving, roost
from support.waiting import patience, wait_for

PASSWORD = "pa55word-of-the-database"


@pytest.mark.parametrize("scheme", ["postgresql+psycopg", "mysql+pymysql"])
@pytest.mark.parametrize("command", [("db", "verify"), ("db", "upgrade"), ("db", "trim")])
def test_the_password_of_a_database_is_in_no_error(scheme: str, command: tuple[str, ...]) -> None:
    url = f"{scheme}://roost:{PASSWORD}@127.0.0.1:1/roost"
    done = roost(*command, "--database", url)
    assert done.returncode == 2 and done.stderr.startswith("roost: ")
    assert PASSWORD not in done.stderr + done.stdout


@pytest.mark.parametrize("scheme", ["postgresql+psycopg", "mysql+pymysql"])
def test_the_password_of_a_database_is_in_no_warning(scheme: str, tmp_path: Path) -> None:
    """A service waits for the server."""
    url = f"{scheme}://roost:{PASSWORD}@127.0.0.1:1/roost"
    log = tmp_path / "log"
    serving = Serving(url, log, waits=False)
    try:
        wait_for(lambda: "the start waits for a database" in log.read_text())
    finally:
        serving.end()
    assert PASSWORD not in log.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "x\n2026-01-01T00:00:00.000+00:00 error 1 roost: forged",
        "x\r\nforged",
        "\x1b[2J\x1b[31mforged",
        "x\u2028forged",
        "x\x85forged",
        "\x00forged",
        "x\u202egorf",
    ],
)
def test_a_value_cannot_forge_a_line_or_steer_a_terminal(text: str) -> None:
    """Each record is one printable line, whether the text is the event, a value, or from another library."""
    program = (
        "import logging, sys, structlog; from roost.process.logs import configure_logs; configure_logs();"
        "text = sys.stdin.buffer.read().decode();"
        "structlog.get_logger().warning('an event', value=text, nested={'a': [text]});"
        "structlog.get_logger().warning(text);"
        "logging.getLogger('library').warning('said %s', text)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=text.encode(),
        capture_output=True,
        timeout=patience(60),
        check=True,
    )
    lines = done.stderr.decode().removesuffix("\n").split("\n")
    assert len(lines) == 3, lines
    assert all(line.isprintable() for line in lines), lines
