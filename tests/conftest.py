"""Databases and the nightly seed of all tests. The summary names the databases and the seed."""

import gc
import logging
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import settings

from roost.storage import engine
from support.browser import NOT_INSTALLED as BROWSER_NOT_INSTALLED
from support.databases import KINDS, Place, Servers
from support.nova import NOT_INSTALLED
from support.rabbitmq import NOT_INSTALLED as BROKER_NOT_INSTALLED
from support.rabbitmq import PROGRAM, RabbitMQ
from support.seeds import VARIABLE, draw_seed, is_nightly, nightly_seed
from support.waiting import patience

# A loaded machine is no defect, so no example has a time limit. The nightly run has thousands of examples.
settings.register_profile("each change", settings(), deadline=None, max_examples=40)
settings.load_profile("each change")

FIRST = (
    "web/auth/test_keystone.py",  # it installs Keystone, for which others wait
    "guides/test_guides.py",
    "chaos/test_chaos.py",
    "chaos/test_rolling_upgrade.py",
    "server/all_in_one/test_kill.py",
    "bench/test_commands.py",
    "placement/exchange/test_there_and_back.py",
    "placement/exchange/test_interrupted.py",
    "server/backup/test_killed.py",
    "server/backup/test_serving.py",
    "server/backup/test_data_directory.py",
    "differential/test_differential.py",
    "conductor/test_super_conductor.py",
    "ledger/test_kill.py",
    "ledger/test_replicas.py",
    "monitoring/test_prometheus.py",
    "scheduler/gateways/test_same_answers.py",
    "scheduler/cache/test_same_as_offered.py",
    "install/test_containerfile.py",
    "test_seeds.py",
)
"""Files with long tests. They begin first, so that at the end of a run no process is left alone with one."""

_SERVERS = pytest.StashKey[Servers]()
_CONNECT_SECONDS = engine.CONNECT_SECONDS


@pytest.hookimpl(tryfirst=True)  # before Hypothesis reads its options
def pytest_configure(config: pytest.Config) -> None:
    draw_seed(config)
    # Where tests run in the background SIGINT is ignored, by the programs that they start as well.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Programs of the tests neither read nor write the profiles of the person who runs them.
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        folder = tempfile.TemporaryDirectory(prefix="roost-tests-")
        config.add_cleanup(folder.cleanup)
        os.environ[variable] = folder.name
    # Tables are as wide as their rows, and not as the terminal of the person who runs the tests.
    for variable in ("COLUMNS", "LINES"):
        os.environ.pop(variable, None)
    config.stash[_SERVERS] = Servers()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files of a parallel run: `FIRST`, then those with the most tests."""
    folder = Path(__file__).parent
    first = {folder / name: place for place, name in enumerate(FIRST)}
    if gone := [str(path) for path in first if not path.exists()]:
        raise pytest.UsageError(f"FIRST names files that do not exist: {', '.join(gone)}")
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (first.get(item.path, len(first)), -tests[item.path], item.path))


def pytest_collection_finish() -> None:
    """Leave what was collected out of garbage collections: it stays, and is most of what there is."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A database server that has no processor time for some seconds is not away."""
    engine.CONNECT_SECONDS = patience(_CONNECT_SECONDS)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """A program that a test ran in this process has sent all logs where the test is no longer."""
    if structlog.is_configured():
        structlog.reset_defaults()
        root = logging.getLogger()
        root.handlers = [each for each in root.handlers if type(each).__module__.startswith("_pytest")]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """One of several processes of a run tells the one that sums up."""
    if hasattr(session.config, "workeroutput"):
        servers = session.config.stash[_SERVERS]
        session.config.workeroutput["servers"] = (servers.tested, servers.untested, servers.not_started)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    servers = node.config.stash[_SERVERS]
    tested, untested, not_started = getattr(node, "workeroutput", {}).get("servers", ({}, {}, {}))
    servers.tested.update(tested)
    servers.untested.update(untested)
    for kind, failures in not_started.items():
        servers.not_started.setdefault(kind, []).extend(failures)


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[_SERVERS].close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if is_nightly(config):
        terminalreporter.write_line(f"to repeat these random cases: {VARIABLE}={nightly_seed()} make nightly")
    servers = config.stash[_SERVERS]
    if servers.tested or servers.untested:
        terminalreporter.write_line(f"servers tested: {', '.join(servers.tested) or 'none'}")
    for kind, reason in servers.untested.items():
        terminalreporter.write_line(f"NOT tested: {kind} ({reason})", yellow=True)
    for kind, failures in servers.not_started.items():
        for failure in failures:
            terminalreporter.write_line(f"did NOT start at once: {kind}: {failure}", yellow=True)
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())]
    for reason in (NOT_INSTALLED, BROKER_NOT_INSTALLED, BROWSER_NOT_INSTALLED):
        if any(reason in each for each in skipped):
            terminalreporter.write_line(reason, yellow=True)


@pytest.fixture(scope="session")
def servers(pytestconfig: pytest.Config) -> Servers:
    """The session's database servers."""
    return pytestconfig.stash[_SERVERS]


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Place]:
    """A fresh database, of each kind in turn."""
    with servers.place(request.param, tmp_path) as place:
        yield place


@pytest.fixture(params=[kind for kind in KINDS if kind != "galera"])
def database_url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh database, of each kind in turn but Galera, which is a MariaDB to one process."""
    with servers.place(request.param, tmp_path) as place:
        yield place.url


@pytest.fixture(scope="session")
def session_broker() -> Iterator[RabbitMQ]:
    if PROGRAM is None:
        pytest.skip(BROKER_NOT_INSTALLED)
    # Not below pytest's folders, which the broker's account cannot enter.
    with tempfile.TemporaryDirectory(prefix="roost-rabbitmq-") as folder:
        broker = RabbitMQ(Path(folder))
        try:
            broker.start()
            yield broker
        finally:
            broker.close()


@pytest.fixture
def broker(session_broker: RabbitMQ) -> RabbitMQ:
    """The session's RabbitMQ, started again if a test has stopped it."""
    if not session_broker.answers():
        session_broker.start()
    return session_broker
