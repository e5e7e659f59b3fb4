"""The new generation of a consumer in the row of its active instance, after the claim was written again."""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ACTIVE
from roost.state.cell_database.arrivals import INSTANCES
from roost.state.cell_database.rows import instance_of, selection_text
from roost.state.cell_database.tables import instances
from roost.storage import transaction


@transaction
def note_claimed_again(connection: Connection, instance: str, attempt: int, generation: int) -> bool:
    """Note the generation of a claim that was written for an attempt, if that attempt's guest still runs.

    Returns whether it does.
    """
    here = (
        instances.c.uuid == instance,
        instances.c.attempt == attempt,
        instances.c.state == ACTIVE,
    )
    row = connection.execute(INSTANCES.where(*here).with_for_update()).one_or_none()
    if row is None or (selection := instance_of(row).selection) is None:
        return False
    new = selection_text(msgspec.structs.replace(selection, generation=generation))
    connection.execute(sa.update(instances).where(*here).values(selection=new))
    return True
