"""`roost agent --check`: options, tokens, directories and the endpoint of an agent are looked at."""

import asyncio
import stat
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

from roost.agent.persistent_state import KeptSession, StateDirectory
from roost.bench.loopback import free_port
from roost.cli.agent import agent as agent_command
from roost.cli.doctor import agent
from roost.cli.doctor.check import run_checks
from roost.process.option_source import Setting, Source


def found(folder: Path, endpoint: str, *settings: str, **named: object) -> dict[str, list[tuple[str, str]]]:
    """Level and text of what each check finds of an agent of host h."""
    checked = agent.CheckedAgent(
        hosts={"h": folder / "state"},
        endpoint=endpoint,
        token_file=folder / "tokens",
        source=Source(settings=tuple(map(Setting.parse, settings))),
        **named,  # type: ignore[arg-type]
    )
    said: dict[str, list[tuple[str, str]]] = {}
    for each in run_checks(agent.CHECKS, checked):
        assert (each.change == "") is (each.level in ("ok", "skip")), each
        said.setdefault(each.check, []).append((each.level, each.says))
    return said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tokens").write_text("h secret\n")
    (tmp_path / "tokens").chmod(0o600)
    return tmp_path


@pytest.fixture
def nobody() -> str:
    """A URL at which nothing listens."""
    return f"http://127.0.0.1:{free_port()}"


def test_agent_whose_endpoint_is_away(folder: Path, nobody: str) -> None:
    said = found(folder, nobody)
    assert said["agent"] == [("ok", "the options are valid, and the driver is simulated")]
    assert said["tokens"][0] == ("ok", f"{folder / 'tokens'} has the tokens of 1 host")
    assert said["state"] == [("ok", "1 state directories can be used")]
    assert not (folder / "state").exists()
    [(level, says)] = said["endpoint"]
    assert (level, nobody in says) == ("fail", True)
    assert said["access"][0][0] == "skip"


def test_wrong_options_and_tokens_are_told(folder: Path, nobody: str) -> None:
    (folder / "tokens").write_text("other secret\n")
    (folder / "tokens").chmod(0o644)
    said = found(folder, nobody, "agent.poll_seconds=0", driver="libvrit")
    assert said["agent"][0][0] == "fail" and "libvrit" in said["agent"][0][1]
    assert said["tokens"] == [("fail", f"{folder / 'tokens'} has no token of host h")]
    (folder / "tokens").write_text("h secret\n")
    assert [level for level, _ in found(folder, nobody)["tokens"]] == ["ok", "warn"]
    said = found(folder, nobody, "agent.poll_seconds=perhaps")
    assert said["agent"][0][0] == "fail" and "perhaps" in said["agent"][0][1]


def test_agents_that_run_or_wait_for_an_operator(folder: Path, nobody: str) -> None:
    state = StateDirectory(folder / "state")
    said = found(folder, nobody)
    assert said["state"] == [("ok", "agents of 1 of the hosts run now")]
    assert said["access"] == [("skip", "not checked: the agents run, 'roost host list' says how they are")]
    asyncio.run(state.keep_session(KeptSession(refused={"n": "the name b is that of another host"})))
    refusal = "the cell does not take the report of node n of host h: the name b is that of another host"
    assert found(folder, nobody)["state"][0] == ("fail", refusal)
    asyncio.run(state.keep_session(KeptSession(held="the database is another one")))
    state.close()
    level, says = found(folder, nobody)["state"][0]
    assert (level, "the database is another one" in says) == ("fail", True)
    (folder / "state" / "session.json").write_text("{")
    assert found(folder, nobody)["state"][0][0] == "fail"


def test_tokens_in_clear_and_files_of_tls_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "ANSWER_SECONDS", 0.01)
    said = found(folder, "http://cell.invalid:8781")["endpoint"]
    assert said[0] == ("warn", "tokens and orders travel to cell.invalid without encryption")
    said = found(folder, "https://127.0.0.1:1", authority=folder / "none.pem")
    assert said["endpoint"][0][0] == "fail" and "TLS" in said["endpoint"][0][1]
    assert said["access"][0][0] == "skip"


def test_what_is_no_endpoint_is_told(folder: Path) -> None:
    class Other(BaseHTTPRequestHandler):
        def send(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    for method in ("do_GET", "do_POST"):
        setattr(Other, method, Other.send)
    with HTTPServer(("127.0.0.1", 0), Other) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        said = found(folder, f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()
    assert said["endpoint"][0][0] == "fail" and "404" in said["endpoint"][0][1]
    assert said["access"][0][0] == "fail"


def test_command_has_the_status_of_what_is_found(folder: Path, nobody: str) -> None:
    arguments = ["--check", "--host", "h", "--endpoint", nobody, "--state-dir", str(folder / "state")]
    result = CliRunner().invoke(agent_command, [*arguments, "--token-file", str(folder / "tokens")])
    assert result.exit_code == 2, result.output
    assert "start the cell's conductor" in " ".join(result.output.split())
    assert stat.S_IMODE((folder / "tokens").stat().st_mode) == 0o600
