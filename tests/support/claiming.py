"""A process that claims and frees without end, and prints each write that was acknowledged.

``python -m support.claiming URL PREFIX`` prints ``+ CONSUMER`` for a claim and ``- CONSUMER`` for a
freed claim.
"""

import asyncio
import sys

from roost.ledger import Ledger
from roost.placement.commands.allocations import DeleteAllocations
from support.databases import Place
from support.ledgers import claim, opened


async def claim_and_free(ledger: Ledger, name: str) -> None:
    number = 0
    while True:
        consumer = f"{name}-{number}"
        await ledger.execute(claim(consumer, "p", VCPU=1))
        print("+", consumer, flush=True)
        if number % 3 == 0:
            await ledger.execute(DeleteAllocations(consumer))
            print("-", consumer, flush=True)
        number += 1


async def main(url: str, prefix: str) -> None:
    async with opened(Place(url.partition("+")[0], (url,))) as [ledger]:
        await asyncio.gather(*(claim_and_free(ledger, f"{prefix}-{number}") for number in range(20)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
