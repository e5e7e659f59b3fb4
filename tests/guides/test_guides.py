"""Every command of the guides works as written."""

import contextlib
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from keystoneauth1 import loading, session
from oslo_config import cfg

from guides.running import ROOT, Machine, blocks, commands
from roost.bench.postgresql import PostgreSQL
from support.databases import Servers
from support.waiting import patience

GUIDES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/guides").glob("*.md"))
SCRIPTS = {guide for guide in GUIDES if any(block.language == "bash" for block in blocks(guide))}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def postgresql(servers: Servers, machine: Machine) -> Iterator[Machine]:
    """A machine with a PostgreSQL of its own, at which the commands of its clients arrive."""
    server = servers.new("postgresql", "guide")
    assert isinstance(server, PostgreSQL)
    server.start()
    machine.environment |= {"PGHOST": "127.0.0.1", "PGPORT": str(server.port)}
    # The test's server has the superuser roost; Debian's has postgres, and the guide makes the role roost.
    server.ask("CREATE ROLE postgres SUPERUSER LOGIN")
    rename = ["psql", "-qU", "postgres", "-d", "postgres", "-c", "ALTER ROLE roost RENAME TO first"]
    subprocess.run(rename, env=machine.environment, check=True, timeout=patience(60))
    with contextlib.ExitStack() as stack:
        stack.callback(server.kill)
        yield machine


def test_every_guide_has_a_test() -> None:
    tested = set(re.findall(r'"(docs/guides/[\w-]+\.md)"', Path(__file__).read_text()))
    assert len(SCRIPTS) > 5
    assert tested >= SCRIPTS


def test_clients(machine: Machine) -> None:
    guide = "docs/guides/clients.md"
    [program] = [block.text for block in blocks(guide) if block.language == "python"]
    (machine.folder / "program.py").write_text(machine.here(program))
    script = commands(guide) + f"\n{sys.executable} program.py\n"
    shown = machine.run(script)
    assert "COMPUTE_STATUS_DISABLED" in shown and '"allocation_requests"' in shown
    assert re.search(r"[0-9a-f-]{36} 64$", shown, re.MULTILINE), f"the program printed nothing: {shown}"


def test_quick_start(postgresql: Machine) -> None:
    postgresql.run(commands("docs/guides/quick-start.md"))


def test_three_racks(postgresql: Machine) -> None:
    postgresql.run(commands("docs/guides/three-racks.md"))


def test_moves(machine: Machine) -> None:
    shown = machine.run(commands("docs/guides/moves.md"))
    assert shown.count("0 left") >= 3, shown
    assert re.search(r"reverted", shown), shown


def test_high_availability(machine: Machine) -> None:
    machine.run(commands("docs/guides/high-availability.md"))


def test_troubleshooting(machine: Machine) -> None:
    machine.run(commands("docs/guides/troubleshooting.md"))


def test_sizing(machine: Machine) -> None:
    machine.run(commands("docs/guides/sizing.md"))


def test_kubernetes(machine: Machine) -> None:
    """The commands that need no cluster. `tests/install` has the chart, and its values in the guide."""
    machine.run(commands("docs/guides/kubernetes.md"))
    assert (machine.folder / "operator.token").read_text().startswith("roost-service-")


def test_installing(machine: Machine) -> None:
    """All but the installation itself, which `tests/install` has."""
    machine.run(commands("docs/guides/installing.md"))
    installed = machine.folder / "etc/systemd/system"
    assert {path.name for path in installed.iterdir()} == {
        path.name for path in (ROOT / "packaging/systemd").glob("*.service")
    }
    assert (machine.folder / "usr/local/share/man/man1/roost-serve.1").exists()
    assert "_ROOST_COMPLETE" in (machine.folder / "etc/bash_completion.d/roost").read_text()


MIGRATION = {
    "mysql+pymysql://placement:secret@db.example/placement_new": "sqlite:///again.db",
    "mysql+pymysql://placement:secret@db.example/placement": "sqlite:///old.db",
    "postgresql+psycopg://roost@db.example/roost": "sqlite:///new.db",
    "runuser -u postgres -- dropdb roost": "rm new.db",
    "runuser -u postgres -- createdb --owner roost roost": "",
}
"""What stands for the names of the page. `tests/placement/exchange` has the other databases, with data in
them."""


def test_from_placement_to_roost_and_back(machine: Machine) -> None:
    machine.environment |= {
        "OS_PLACEMENT_DATABASE__CONNECTION": f"sqlite:///{machine.folder}/old.db",
        "OS_API__AUTH_STRATEGY": "noauth2",
        "OS_AUTH_TYPE": "admin_token",
        "OS_TOKEN": "admin",
        "OS_ENDPOINT": machine.here("http://localhost:8778"),
        "OS_PLACEMENT_API_VERSION": "1.39",
    }
    (machine.folder / "etc/placement").mkdir()
    options = "[placement]\nrandomize_allocation_candidates = true\n"
    (machine.folder / "etc/placement/placement.conf").write_text(options)
    script = commands("docs/migrating.md")
    for written, here in MIGRATION.items():
        assert written in script
        script = script.replace(written, here)
    # A provider that is made in Roost goes back with the export.
    there, back, rest = script.partition("BACK=")
    made = "openstack resource provider create new-in-roost\nkill %1\nwait %1 || true\n"
    machine.run(there + made + back + rest)
    with contextlib.closing(sqlite3.connect(machine.folder / "again.db")) as exported:
        assert exported.execute("SELECT name FROM resource_providers").fetchall() == [("new-in-roost",)]


def sections() -> list[str]:
    return [block.text for block in blocks("docs/guides/clients.md") if block.language == "ini"]


@pytest.mark.parametrize("number", [0, 1])
def test_nova_reads_its_section(number: int, tmp_path: Path) -> None:
    """keystoneauth1 reads the section as for Nova: each option exists, and the plugin can be made."""
    file = tmp_path / "nova.conf"
    file.write_text(sections()[number])
    conf = cfg.ConfigOpts()
    loading.register_auth_conf_options(conf, "placement")
    loading.register_session_conf_options(conf, "placement")
    loading.register_adapter_conf_options(conf, "placement")
    conf([], default_config_files=[str(file)])
    auth = loading.load_auth_from_conf_options(conf, "placement")
    loading.load_adapter_from_conf_options(conf, "placement", session=session.Session(auth), auth=auth)
    known = {option.dest for option in loading.get_auth_plugin_conf_options(conf.placement.auth_type)}
    known |= {option.dest for option in loading.get_adapter_conf_options()}
    names = set(re.findall(r"^(\w+) =", file.read_text(), re.MULTILINE))
    assert names - {"auth_type"} <= {name.replace("-", "_") for name in known}


def test_nova_without_keystone_gets_answers(machine: Machine) -> None:
    [start] = [block.text for block in blocks("docs/guides/clients.md") if "roost serve" in block.text]
    program = """
import sys
from keystoneauth1 import loading, session
from oslo_config import cfg
conf = cfg.ConfigOpts()
for register in (loading.register_auth_conf_options, loading.register_session_conf_options,
                 loading.register_adapter_conf_options):
    register(conf, "placement")
conf([], default_config_files=["nova.conf"])
auth = loading.load_auth_from_conf_options(conf, "placement")
session = loading.load_session_from_conf_options(conf, "placement", auth=auth)
client = loading.load_adapter_from_conf_options(conf, "placement", session=session, auth=auth)
answer = client.get("/resource_providers", headers={"openstack-api-version": "placement 1.39"})
print(answer.status_code, answer.text)
"""
    (machine.folder / "nova.conf").write_text(machine.here(sections()[1]))
    (machine.folder / "nova.py").write_text(program)
    shown = machine.run(f"{start}\n{sys.executable} nova.py")
    assert '200 {"resource_providers":[]}' in shown
