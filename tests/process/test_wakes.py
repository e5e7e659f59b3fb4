"""Topics wake the listeners that have not seen the wake."""

import asyncio

from roost.process.wakes import Wakes


def test_a_wake_between_a_look_and_the_wait_is_not_missed() -> None:
    async def run() -> None:
        wakes = Wakes()
        listener = wakes.listen("work")
        assert await listener.wait(60.0), "the first wait ends at once"
        wakes.wake("work")
        assert await listener.wait(60.0), "woken since"
        assert not await listener.wait(0.0), "nothing since"
        asyncio.get_running_loop().call_soon(wakes.wake, "work")
        assert await listener.wait(60.0)

    asyncio.run(run())


def test_a_listener_from_now_on_has_seen_all_earlier_wakes() -> None:
    async def run() -> None:
        wakes = Wakes()
        wakes.wake("work")
        listener = wakes.listen("work", from_now=True)
        assert not await listener.wait(0.0)
        wakes.wake("work")
        assert await listener.wait(60.0)

    asyncio.run(run())
