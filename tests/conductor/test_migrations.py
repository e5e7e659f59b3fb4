"""What an earlier version left in the API database is worked on after the upgrade."""

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory

from roost.model.names import look_of
from roost.state.api_database.tables import SCHEMA


def test_names_that_are_there_have_their_look() -> None:
    """Look-alikes of names that an earlier version has stored are found."""
    names = ["Rack-0I1", "io.example", "plain"]
    [revision] = [
        each for each in ScriptDirectory(str(SCHEMA.scripts)).walk_revisions() if each.revision == "0021"
    ]
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE host_mappings (host VARCHAR(255), cell VARCHAR(255))"))
        connection.execute(sa.text("CREATE TABLE node_names (name VARCHAR(255), host VARCHAR(255))"))
        for name in names:
            connection.execute(sa.text("INSERT INTO host_mappings VALUES (:name, 'cell1')"), {"name": name})
            connection.execute(sa.text("INSERT INTO node_names VALUES (:name, 'a')"), {"name": name})
        with Operations.context(MigrationContext.configure(connection)):
            revision.module.upgrade()
            revision.module.upgrade()
        for table, column in (("host_mappings", "host"), ("node_names", "name")):
            rows = connection.execute(sa.text(f"SELECT {column}, look FROM {table}")).all()
            assert dict(map(tuple, rows)) == {name: look_of(name) for name in names}
    engine.dispose()
