"""The log of state changes of a cell, compared with the histories of its instances."""

from collections import defaultdict

import sqlalchemy as sa

from roost.state.cell_database.tables import instances, past_instances, state_changes


def check_log(connection: sa.Connection) -> None:
    """Assert that the log tells the changes of all histories in their order. A full history lacks some."""
    told: defaultdict[str, list[str]] = defaultdict(list)
    for row in connection.execute(sa.select(state_changes).order_by(state_changes.c.id)):
        told[row.instance_uuid].append(row.line)
        assert f'"state":"{row.state}","at":{row.at}' in row.line, row
    for table in (instances, past_instances):
        for row in connection.execute(sa.select(table.c.uuid, table.c.history)):
            rest = iter(told[row.uuid])
            for line in (row.history or "").split("\n")[:-1]:
                assert f"{line}\n" in rest, (row.uuid, line, told[row.uuid])
