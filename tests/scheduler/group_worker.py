"""A scheduler in a process of its own. Arguments: URL of the database, name, number of requests."""

import asyncio
import json
import random
import sys
import uuid

from roost.ledger import Ledger
from roost.model.spec import ServerGroup
from roost.placement.errors import PlacementError
from roost.scheduler import NoValidHost, Scheduler
from roost.scheduler.gateways.local import LocalGateway
from roost.storage import Database
from support.clouds import NOW, Kept, flat, spec

HOSTS = 12
VCPUS = 6
GROUPS = (
    *(ServerGroup(f"apart-{number}", "anti-affinity") for number in range(4)),
    ServerGroup("pairs", "anti-affinity", (), 2),
    *(ServerGroup(f"together-{number}", "affinity") for number in range(3)),
)


async def main(url: str, name: str, count: int) -> None:
    database = Database(url)
    ledger = await Ledger.open(database)
    scheduler = Scheduler(LocalGateway(ledger), flat(HOSTS, VCPUS).table(), Kept(), None, lambda: NOW)
    draw = random.Random(name)
    print("ready", flush=True)
    sys.stdin.readline()

    async def one(number: int) -> str:
        try:
            await scheduler.select_destinations(
                spec(group=draw.choice(GROUPS)),
                1,
                instances=[str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name}/{number}"))],
            )
        except (NoValidHost, PlacementError) as error:
            return type(error).__name__
        return "placed"

    answers: list[str] = []
    for first in range(0, count, 4):
        answers += await asyncio.gather(*map(one, range(first, min(count, first + 4))))
    print(json.dumps(answers), flush=True)
    await ledger.close()
    await database.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
