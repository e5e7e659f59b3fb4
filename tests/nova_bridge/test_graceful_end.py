"""The time that `roost nova-scheduler` has to end: that of Nova's calls in work, and that of all else."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from roost.cli import nova_scheduler as command
from roost.cli.programs import ServingOptions


@pytest.mark.parametrize(
    ("conf", "arguments", "seconds"),
    [
        ("", [], 70.0),
        ("", ["--drain-seconds", "1"], 65.0),
        ("graceful_shutdown_timeout = 200", [], 210.0),
        ("graceful_shutdown_timeout = 0", [], 10_000_010.0),
        ("[nova_bridge]\nmode = shadow", [], 10.0),
    ],
)
def test_a_worker_is_not_killed_while_calls_may_be_in_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conf: str, arguments: list[str], seconds: float
) -> None:
    config = tmp_path / "nova.conf"
    own = f"sqlite:///{tmp_path / 'roost.db'}"
    config.write_text(
        f"[DEFAULT]\n{conf}\n[api_database]\nconnection = sqlite:///{tmp_path / 'api.db'}\n"
        f"[nova_bridge]\nconnection = {own}\n"
    )
    seen: list[float] = []

    def serve(_name: str, _read: Any, serving: ServingOptions, *_: Any) -> None:
        seen.append(serving.rules.drain_seconds)

    monkeypatch.setattr(command, "serve_program", serve)
    result = CliRunner().invoke(command.nova_scheduler, ["--config-file", str(config), *arguments])
    assert result.exit_code == 0, result.output
    assert seen == [seconds]
