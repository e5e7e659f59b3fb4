"""The report of a process: what it shows, and that it shows no secret."""

import asyncio
import io
import json
import os
import signal
import threading
from pathlib import Path

import pytest
from oslo_config import cfg

import roost
from roost.bench.loopback import free_port
from roost.model.secrets import HIDDEN as MASK
from roost.process.report import ProcessReport, masked, masked_options
from support.processes import RoostUp
from support.serving import Serving
from support.waiting import wait_for


async def some_work() -> None:
    await asyncio.sleep(3600)


def parts(text: str) -> dict[str, str]:
    """The sections of a report by their titles."""
    found = [part.partition("\n") for part in text.removeprefix("== ").split("\n== ")]
    return {title: body for title, _, body in found}


async def written(report: ProcessReport) -> dict[str, str]:
    stream = io.StringIO()
    await asyncio.to_thread(report.write, stream)
    return parts(stream.getvalue())


def test_a_report_has_versions_sections_tasks_and_threads() -> None:
    async def run() -> dict[str, str]:
        tasks = [asyncio.create_task(some_work()) for _ in range(3)]
        await asyncio.sleep(0)
        report = ProcessReport(
            asyncio.get_running_loop(),
            options=lambda: {"[a] b": 1},
            sections={"ledger": lambda: {"version": 7}},
        )
        found = await written(report)
        for task in tasks:
            task.cancel()
        return found

    found = asyncio.run(run())
    assert f"roost {roost.__version__}," in found["process"] and "SQLAlchemy 2" in found["process"]
    assert found["options"] == "[a] b = 1"
    assert found["ledger"] == "version = 7"
    waiting = found["tasks"].split("3 x\n")[1].splitlines()
    assert waiting[0].endswith(" some_work") and waiting[1].endswith(" sleep")
    assert "MainThread" in found["threads"]


def test_a_report_comes_although_the_event_loop_hangs_and_a_section_fails() -> None:
    released = threading.Event()
    stream = io.StringIO()

    def fail() -> dict[str, object]:
        raise RuntimeError("away")

    async def run() -> None:
        report = ProcessReport(asyncio.get_running_loop(), fail, {"ledger": lambda: {"version": 7}})

        def write() -> None:
            report.write(stream)
            released.set()

        threading.Thread(target=write).start()
        assert released.wait(60), "the report waited for the event loop"

    asyncio.run(run())
    found = parts(stream.getvalue())
    assert found["options"] == "cannot be described: RuntimeError: away"
    assert found["ledger"] == "unknown = 'the event loop has not answered for 2 seconds'"
    assert "some_work" not in found["tasks"] and "wait" in found["threads"]


def test_secrets_are_masked() -> None:
    conf = cfg.ConfigOpts()
    options = [
        cfg.StrOpt("connection", secret=True, default="postgresql://a:SECRET@db/x"),
        cfg.StrOpt("empty", secret=True),
        cfg.StrOpt("admin_password", default="SECRET"),
        cfg.StrOpt("auth_url", default="http://user:SECRET@keystone/v3?password=SECRET&a=1"),
        cfg.ListOpt("servers", default=["redis://:SECRET@one", "two"]),
        cfg.StrOpt("plain", default="seen"),
    ]
    conf.register_opts(options, group="a")
    conf([], default_config_files=[])
    assert masked_options(conf, {"a": options}) == {
        "[a] connection": MASK,
        "[a] empty": None,
        "[a] admin_password": MASK,
        "[a] auth_url": f"http://{MASK}@keystone/v3?password={MASK}&a=1",
        "[a] servers": [f"redis://{MASK}@one", "two"],
        "[a] plain": "seen",
    }
    assert masked("sqlite:///roost.db") == "sqlite:///roost.db"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_worker_logs_its_report_on_a_signal(tmp_path: Path, as_json: bool) -> None:
    log = tmp_path / "log"
    settings = (
        f"DEFAULT.use_json={as_json}",
        "placement_database.connection=mysql+pymysql://a:SECRET@db/x",
        "DEFAULT.access_log=true",
    )
    serving = Serving(f"sqlite:///{tmp_path}/roost.db", log, settings=settings)
    try:
        own = serving.ask("GET", "/").headers["x-openstack-request-id"]
        wait_for(lambda: own in log.read_text())
        line = next(line for line in log.read_text().splitlines() if own in line)
        worker = json.loads(line)["process"] if as_json else int(line.split()[2])
        assert serving.ask("GET", "/readyz").status_code == 200
        os.kill(worker, signal.SIGUSR2)
        wait_for(lambda: "MainThread" in log.read_text())
        assert serving.ask("GET", "/").status_code == 200
    finally:
        serving.end()
    text = log.read_text()
    assert "SECRET" not in text
    if as_json:
        [found] = [json.loads(line) for line in text.splitlines() if "roost.process.report" in line]
        text = found["block"]
    assert "[api] auth_strategy = 'noauth2'" in text and "_live" in text
    assert "lag_commits = 0" in text and f"{tmp_path}/roost.db" in text
    assert all(f"{check} = 'passed'" in text for check in ("database", "ledger", "history"))


def test_roost_up_logs_its_report_on_a_signal(tmp_path: Path) -> None:
    with RoostUp(tmp_path / "data", ("--hosts", "2", "--cells", "1"), free_port()) as system:
        system.wait_until_up()
        os.kill(system.pid, signal.SIGUSR2)
        wait_for(lambda: "MainThread" in system.stderr)
        with system.client() as client:
            assert client.get("/").status_code == 200
        text = system.stderr
    assert "[records] connection = '***'" in text
    assert "hosts = 2" in text and "lag_commits = 0" in text and "== tasks" in text
