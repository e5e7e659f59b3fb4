"""The databases of `roost db` come from the configuration and the environment as those of services do."""

from pathlib import Path

import pytest

from roost.cli.databases import DatabaseChoice
from roost.model.errors import OperatorError
from roost.process.option_source import Setting, Source
from support.processes import run_roost

FILE = """
[placement_database]
connection = sqlite:///{0}/api.db
[cell_a]
connection = sqlite:///{0}/a.db
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "roost.conf"
    path.write_text(FILE.format(tmp_path))
    return path


def test_a_database_is_upgraded_and_shown_by_the_configuration_of_the_services(
    tmp_path: Path, file: Path
) -> None:
    for options, made in (((), "api.db"), (("--section", "cell_a"), "a.db")):
        done = run_roost("db", "upgrade", "--config-file", file, *options)
        assert done.returncode == 0, done.stderr
        shown = run_roost("db", "version", "--database", f"sqlite:///{tmp_path}/{made}", "--json")
        assert ('"cell"' in shown.stdout) == (made == "a.db")


def test_the_environment_names_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", f"sqlite:///{tmp_path}/x.db")
    assert str(DatabaseChoice(None, None, Source()).find().url) == f"sqlite:///{tmp_path}/x.db"


def test_a_database_that_serve_made_is_healthy(tmp_path: Path) -> None:
    """It has the tables of placement alone."""
    from roost.ledger import SCHEMA
    from roost.storage import Database

    SCHEMA.upgrade(Database(f"sqlite:///{tmp_path}/serve.db"))
    assert run_roost("db", "version", "--database", f"sqlite:///{tmp_path}/serve.db").returncode == 0


def test_a_section_has_the_kind_of_its_database(file: Path) -> None:
    source = Source((str(file),))
    assert DatabaseChoice(None, None, source).find().role == "api"
    assert DatabaseChoice(None, "cell_a", source).find().role == "cell"
    assert DatabaseChoice("sqlite:///x.db", None, source).find().role is None
    for section, says in (("cell_b", r"set connection in \[cell_b\]"), ("cells", "not that of a database")):
        with pytest.raises(OperatorError, match=says):
            DatabaseChoice(None, section, source).find()


def test_the_url_says_how_to_name_it_again(file: Path) -> None:
    source = Source((str(file),))
    assert DatabaseChoice(None, None, source).find().url.given_by == f"--config-file {file}"
    of_cell = DatabaseChoice(None, "cell_a", source).find().url
    assert of_cell.upgrade() == f"'roost db upgrade --config-file {file} --section cell_a'"
    told = Source((), (Setting("cell_a", "connection", "sqlite:///x.db"),))
    assert DatabaseChoice(None, "cell_a", told).find().url.given_by is None
