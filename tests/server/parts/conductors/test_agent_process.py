"""`roost agent` as a process, over HTTPS with certificates of both sides, killed while its guests run."""

import signal
from pathlib import Path

from support.certificates import issue, make_authority
from support.forked import Forked, run_forked
from support.programs import Program, write_config
from support.serving import ENVIRONMENT, SECONDS
from support.waiting import wait_for

FLAVOR = {"name": "small", "vcpus": 1, "memory_mb": 512, "disk_gb": 1}
NAMES = ["h-0001", "h-0002"]


class Agents:
    """A process with the agents of hosts `NAMES`. ``folder`` has its state, its log and its tokens."""

    def __init__(self, folder: Path, *command: str | Path) -> None:
        self.log = folder / "agent.log"
        times = ("agent.poll_seconds=1", "agent.retry_seconds=0.1", "agent.token_seconds=3")
        settings = [part for each in times for part in ("--set", each)]
        where = ("--hosts", "2", "--host-prefix", "h-", "--state-dir", folder / "state")
        tokens = ("--token-file", folder / "tokens")
        with self.log.open("ab") as file:
            self.process = Forked("agent", *where, *tokens, *settings, *command, env=ENVIRONMENT, stderr=file)

    def said(self) -> str:
        return self.log.read_text()

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()


def checked(folder: Path, tokens: str, *options: str | Path) -> tuple[int, bool]:
    """The exit status of `roost agent --check`, and whether it tells that the tokens are taken."""
    where = ("--hosts", "2", "--host-prefix", "h-", "--state-dir", folder / "state")
    done = run_forked(
        *("agent", "--check", *where, "--token-file", folder / tokens, *options),
        seconds=SECONDS,
        env=ENVIRONMENT,
    )
    return done.returncode, "takes the tokens of 2 hosts" in done.stdout


def guests(folder: Path) -> set[str]:
    """The guests of all hosts."""
    return {path.name for path in folder.glob("state/*/guests/*")}


def test_guests_outlive_the_agent_and_only_orders_end_them(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, "authority")
    server, client = (issue(authority, tmp_path, name) for name in ("server", "client"))
    tls = ("--tls-cert", server.certificate, "--tls-key", server.key)
    mutual = (*tls, "--tls-client-ca", authority.certificate)
    config = write_config(tmp_path)
    with (
        Program(tmp_path, "conductor", config=config) as conductor,
        Program(tmp_path, "cell-conductor", "cell1", *map(str, mutual), config=config, name="cell") as cell,
    ):
        ask = conductor.client
        assert ask.post("/v1/cells", json={"name": "cell1"}).is_success
        made = ask.post("/v1/hosts", json={"cell": "cell1", "hosts": NAMES})
        assert made.is_success, made.text
        tokens = {each["host"]: each["token"] for each in made.json()["hosts"]}
        (tmp_path / "tokens").write_text("".join(f"{host} {token}\n" for host, token in tokens.items()))
        endpoint = ("--endpoint", f"https://127.0.0.1:{cell.port}", "--ca-file", authority.certificate)
        certificate = ("--cert", client.certificate, "--key", client.key)
        (tmp_path / "tokens").chmod(0o600)
        assert checked(tmp_path, "tokens", *endpoint, *certificate) == (0, True)
        wrong = tmp_path / "wrong tokens"
        wrong.write_text("".join(f"{host} wrong\n" for host in NAMES))
        assert checked(tmp_path, wrong.name, *endpoint, *certificate) == (2, False)
        assert checked(tmp_path, "tokens", *endpoint) == (2, False), "the endpoint wants a certificate"
        agents = Agents(tmp_path, *endpoint, *certificate)
        wait_for(lambda: "roost: agent of 2 hosts" in agents.said())
        assert checked(tmp_path, "tokens", *endpoint, *certificate) == (0, False), "they run"

        def states() -> set[str]:
            return {each["state"] for each in ask.get("/v1/instances").json()["instances"]}

        def build() -> list[str]:
            built = ask.post("/v1/instances", json={"flavor": FLAVOR, "count": 3}).json()["instances"]
            wait_for(lambda: states() <= {"active", "error"} and states())
            return built

        wait_for(lambda: ask.get("/v1/hosts").json()["hosts"][0]["state"] == "up")
        built = build()
        while states() == {"error"}:
            # The scheduler looks for new hosts from time to time, and has not seen these yet.
            for uuid in built:
                ask.delete(f"/v1/instances/{uuid}")
            wait_for(lambda: not states())
            built = build()
        assert guests(tmp_path) == set(built)
        # The tokens were renewed meanwhile, and the first ones are not valid any more.
        wait_for(lambda: len(list(tmp_path.glob("state/*/tokens.json"))) == 2)
        agents.process.kill()
        agents.process.wait()
        assert guests(tmp_path) == set(built)
        assert ask.delete(f"/v1/instances/{built[0]}").status_code == 202
        again = Agents(tmp_path, *endpoint, *certificate)
        wait_for(lambda: guests(tmp_path) == set(built[1:]))
        wait_for(lambda: len(ask.get("/v1/instances").json()["instances"]) == 2)
        other = Agents(tmp_path, *endpoint, *certificate)
        assert other.process.wait() == 2
        assert "another agent uses the state directory" in other.said()
        assert (again.end(), conductor.end(), cell.end()) == (0, 0, 0)
        assert "Traceback" not in cell.said() + agents.said()
