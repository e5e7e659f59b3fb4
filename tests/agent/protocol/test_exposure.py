"""An agent whose tokens and orders can be read on the way to its endpoint says so."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from roost.agent.protocol.exposure import exposure_of
from roost.cli.agent import agent


@pytest.mark.parametrize(
    ("endpoint", "exposed"),
    [
        ("http://127.0.0.1:8781", False),
        ("http://[::1]:8781", False),
        ("http://localhost:8781", False),
        ("https://cell.example:8781", False),
        ("http://cell.example:8781", True),
        ("HTTP://192.0.2.1:8781", True),
        ("http://0.0.0.0:8781", True),
        ("http://localhost.example:8781", True),
    ],
)
def test_http_to_another_machine_is_exposed(endpoint: str, exposed: bool) -> None:
    assert (exposure_of(endpoint) is not None) is exposed


def test_an_agent_warns_at_its_start(tmp_path: Path) -> None:
    arguments = ["--host", "h1", "--endpoint", "http://192.0.2.1:8781", "--state-dir", str(tmp_path)]
    said = CliRunner().invoke(agent, [*arguments, "--token-file", str(tmp_path / "none")]).output
    assert "tokens and orders travel to 192.0.2.1 without encryption" in said
