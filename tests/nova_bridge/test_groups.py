"""The members of Nova's server groups."""

import asyncio
from pathlib import Path

import sqlalchemy as sa

from roost.nova.database.groups import read_members
from roost.nova.database.tables import instance_group_members, instance_groups
from roost.storage import Database
from support.nova_clouds import NovaCloud

ONE, TWO = "0b5dc9f2-0000-4000-8000-000000000001", "0b5dc9f2-0000-4000-8000-000000000002"
APART = {7: "9d7c0b56-0000-4000-8000-000000000007", 8: "9d7c0b56-0000-4000-8000-000000000008"}


def test_the_members_are_those_of_the_group_alone(tmp_path: Path) -> None:
    cloud = NovaCloud(tmp_path)
    groups = [{"id": number, "uuid": group} for number, group in APART.items()]
    members = [
        {"instance_uuid": ONE, "group_id": 7},
        {"instance_uuid": TWO, "group_id": 8},
        {"instance_uuid": None, "group_id": 7},
    ]
    cloud.write(
        "api",
        sa.insert(instance_groups).values(groups),
        sa.insert(instance_group_members).values(members),
    )

    async def read(group: str) -> list[str]:
        database = Database(cloud.urls["api"])
        try:
            return await database.read(read_members(group))
        finally:
            await database.close()

    assert asyncio.run(read(APART[7])) == [ONE]
    assert asyncio.run(read("00000000-0000-4000-8000-000000000000")) == []
