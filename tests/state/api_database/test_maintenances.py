"""The transactions of maintenances do the same on every database, and nothing for anybody but the owner."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import sqlalchemy as sa

from roost.model.instance import Requester
from roost.model.maintenance import (
    CANCELLED,
    CANCELLING,
    DISABLING,
    DONE,
    EMPTYING,
    IN_WORK,
    LEFT_OUT,
    PAUSED,
    RETURNED,
    RETURNING,
    RUNNING,
    WAITING,
    EarlierWord,
    HookResult,
    Maintenance,
    MaintenanceRefused,
)
from roost.model.operator_word import SaidWord, Subject
from roost.state.api_database.drains import ENDED
from roost.state.api_database.maintenance_rows import (
    count_hosts,
    find_maintenance,
    list_hosts,
    list_maintenances,
    maintenances_of_host,
    read_planned_targets,
    read_wave,
)
from roost.state.api_database.maintenance_waves import (
    MaintenanceOwner,
    begin_call,
    begin_wave,
    empty_again,
    end_call,
    end_maintenance,
    has_free_maintenances,
    leave_out,
    note_announced,
    note_empty,
    note_reason,
    note_returned,
    owned_maintenances,
    return_host,
    take_maintenances,
)
from roost.state.api_database.maintenances import (
    begin_maintenance,
    cancel_maintenance,
    finish_host,
    pause_maintenance,
    prune_maintenances,
    resume_maintenance,
)
from roost.state.api_database.operator_words import say_words
from roost.state.api_database.tables import SCHEMA, operator_words
from roost.state.leases import AcquireLease, release_lease
from roost.storage import Database
from support.databases import Place
from support.upgrading import upgrade_empty

BY = Requester("operator", "admins", "req-1")
ONE = "00000000-0000-4000-8000-000000000001"
OWNER = MaintenanceOwner(ONE, "owner", 1)
STRANGER = MaintenanceOwner(ONE, "stranger", 1)
NOW = 1000.0


def wanted(uuid: str = ONE, **named: Any) -> Maintenance:
    return Maintenance(uuid=uuid, state=RUNNING, by=BY, began=NOW, changed_at=NOW, **named)


class Api:
    """An API database with a maintenance of the hosts a, b and c of cell c1."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.write, self.read = database.write, database.read

    async def lease(self, holder: str) -> None:
        await self.write(
            AcquireLease(
                name=f"conductor/{holder}",
                kind="conductor",
                holder=holder,
                host="machine",
                service_version=1,
                now=NOW,
            )
        )

    async def begin(self, **named: Any) -> None:
        await self.lease("owner")
        begun = await self.write(begin_maintenance(wanted(**named), dict.fromkeys("abc", "c1"), "owner"))
        assert isinstance(begun, Maintenance)

    async def wave(self, *hosts: str) -> None:
        """Hosts are disabled and empty, and in work."""
        targets = {host: {f"of-{host}": "d"} for host in hosts}
        assert await self.write(begin_wave(OWNER, targets, NOW)) is not None
        assert await self.write(note_announced(OWNER, hosts, NOW))
        await self.end_drains()
        assert await self.write(note_empty(OWNER, hosts, NOW))

    async def end_drains(self) -> None:
        """The drains of all that is disabled have ended."""
        ended = sa.update(operator_words).where(~operator_words.c.enabled)
        values = {"drain": ENDED, "drain_version": operator_words.c.version}
        await self.write(lambda connection: connection.execute(ended.values(values)) and None)

    async def say(self, host: str, enabled: bool, reason: str = "by hand") -> None:
        await self.write(say_words((SaidWord(Subject("c1", host), enabled, reason, NOW),), BY))

    async def states(self) -> dict[str, str]:
        return {each.host: each.state for each in await self.read(list_hosts(ONE, 10))}

    async def state(self) -> str:
        found = await self.read(find_maintenance(ONE))
        assert found is not None
        return found.state

    async def word(self, host: str) -> tuple[bool, str | None, bool]:
        words = sa.select(operator_words).where(operator_words.c.host == host)
        row = await self.read(lambda connection: connection.execute(words).one())
        return row.enabled, row.reason, row.moves_version == row.version


@pytest.fixture
def playing(place: Place) -> Callable[[Callable[[Api], Awaitable[None]]], None]:
    def play(script: Callable[[Api], Awaitable[None]]) -> None:
        async def run() -> None:
            await script(Api(database))
            await database.close()

        database = Database(place.url)
        upgrade_empty(SCHEMA, database)

        asyncio.run(run())

    return play


def test_a_wave_goes_from_disabled_hosts_to_hosts_that_are_given_back(playing) -> None:
    async def script(api: Api) -> None:
        await api.say("b", enabled=False, reason="a fan is loud")
        await api.begin()
        targets = {"a": {"i1": "c", "i2": "d"}, "b": {"i3": "d"}}
        assert await api.write(begin_wave(OWNER, targets, NOW)) is not None
        assert await api.write(begin_wave(OWNER, {"c": {}}, NOW)) is None, "one wave at a time"
        assert await api.states() == {"a": DISABLING, "b": DISABLING, "c": WAITING}
        assert await api.word("a") == (False, f"maintenance {ONE}", True)
        wave = {each.row.host: each for each in await api.read(read_wave(ONE))}
        assert wave["b"].row.before == EarlierWord(False, "a fan is loud")
        version = wave["a"].row.word_version
        assert version is not None
        planned = {"i1": "c", "i2": "d", "i3": "d"}
        assert await api.read(read_planned_targets((version, 999))) == {version: planned, 999: {}}
        await api.write(note_announced(OWNER, ("a", "b"), NOW))
        await api.write(note_empty(OWNER, ("a", "b"), NOW))
        assert await api.states() == {"a": EMPTYING, "b": EMPTYING, "c": WAITING}, "their drains go on"
        await api.end_drains()
        await api.write(note_empty(OWNER, ("a", "b"), NOW))
        for host, number in (("a", 1), ("b", 1), ("b", 2)):
            assert await api.write(begin_call(OWNER, host)) == number
        there = await api.write(end_call(OWNER, "a", HookResult(None, 0, "new"), 3, NOW))
        assert there is not None and there.state == RETURNING
        there = await api.write(end_call(OWNER, "b", HookResult("status 1", 1, "old"), 3, NOW))
        assert there is not None and (there.state, there.failures, there.calls) == (IN_WORK, 1, 2)
        assert await api.write(finish_host(ONE, "b", NOW, BY)) is not None
        assert await api.word("a") == (True, None, False)
        assert await api.word("b") == (False, "a fan is loud", False)
        assert await api.write(end_maintenance(OWNER, NOW)) is None
        assert await api.write(note_returned(OWNER, ("a", "b"), NOW)) == [RETURNED, RETURNED]
        assert await api.write(end_maintenance(OWNER, NOW)) is None, "c waits"
        assert await api.write(leave_out(OWNER, {"c": "it is full", "a": "it is over"}, NOW)) == 1
        ended = await api.write(end_maintenance(OWNER, NOW))
        assert ended is not None and ended.state == DONE
        assert await api.read(count_hosts(ONE)) == {LEFT_OUT: 1, RETURNED: 2}
        assert await api.write(prune_maintenances(NOW)) == 0
        assert await api.write(prune_maintenances(NOW + 1.0)) == 1
        assert await api.read(list_hosts(ONE, 10)) == []

    playing(script)


def test_nobody_but_the_owner_changes_anything(playing) -> None:
    async def script(api: Api) -> None:
        await api.begin()
        await api.wave("a", "b")
        before = (await api.read(find_maintenance(ONE)), await api.read(list_hosts(ONE, 10)))
        failed = HookResult("status 1")
        for owner in (STRANGER, MaintenanceOwner(ONE, "owner", 2), MaintenanceOwner("none", "owner", 1)):
            for work in (
                begin_wave(owner, {"c": {}}, NOW),
                note_announced(owner, ("a",), NOW),
                note_empty(owner, ("a",), NOW),
                empty_again(owner, "a", NOW),
                begin_call(owner, "a"),
                end_call(owner, "a", failed, 1, NOW),
                return_host(owner, "a", "why not", NOW),
                note_returned(owner, ("a",), NOW),
                leave_out(owner, {"c": "why not"}, NOW),
                note_reason(owner, "why not", NOW, pauses=True),
                end_maintenance(owner, NOW),
            ):
                assert await api.write(work) is None
        assert (await api.read(find_maintenance(ONE)), await api.read(list_hosts(ONE, 10))) == before
        assert not await api.read(has_free_maintenances())
        await api.write(release_lease("conductor/owner", "owner"))
        assert await api.read(has_free_maintenances())
        await api.lease("stranger")
        await api.write(take_maintenances("stranger"))
        [mine] = await api.read(owned_maintenances("stranger"))
        assert (mine.owner, mine.owner_epoch) == ("stranger", 2)
        assert await api.write(begin_call(OWNER, "a")) is None
        assert await api.write(begin_call(MaintenanceOwner(ONE, "stranger", 2), "a")) == 1

    playing(script)


def test_a_call_begins_only_on_a_host_that_is_disabled_and_empty_while_it_runs(playing) -> None:
    async def script(api: Api) -> None:
        await api.begin()
        await api.wave("a", "b")
        await api.say("a", enabled=True)
        assert await api.write(begin_call(OWNER, "a")) is None
        await api.say("a", enabled=False)
        assert await api.write(begin_call(OWNER, "a")) is None, "a later drain has not ended"
        assert await api.write(empty_again(OWNER, "a", NOW))
        assert await api.states() == {"a": EMPTYING, "b": IN_WORK, "c": WAITING}
        assert await api.write(empty_again(OWNER, "b", NOW)) is None
        await api.write(pause_maintenance(ONE, "lunch", NOW, BY))
        assert await api.write(begin_call(OWNER, "b")) is None
        assert await api.write(begin_wave(OWNER, {"c": {}}, NOW)) is None
        await api.write(resume_maintenance(ONE, NOW, BY))
        assert await api.write(begin_call(OWNER, "b")) == 1
        # The word of the operator on a stays.
        assert await api.write(return_host(OWNER, "a", "it is not ours", NOW))
        assert await api.word("a") == (False, "by hand", False)
        assert await api.write(return_host(OWNER, "a", "again", NOW)) is None

    playing(script)


def test_a_host_that_is_left_out_pauses_the_maintenance_unless_it_keeps_going(playing) -> None:
    async def script(api: Api) -> None:
        await api.begin()
        targets = {"a": {"i1": "c"}, "b": {"i2": "c"}}
        assert await api.write(begin_wave(OWNER, targets, NOW)) is not None
        await api.write(return_host(OWNER, "a", "stuck", NOW))
        found = await api.read(find_maintenance(ONE))
        assert found is not None
        assert (found.state, found.reason) == (PAUSED, "host a is left out: stuck")
        assert await api.word("a") == (True, None, False)
        assert await api.word("b") == (False, f"maintenance {ONE}", False), "its instances stay"
        await api.write(resume_maintenance(ONE, NOW, BY))
        assert await api.word("b") == (False, f"maintenance {ONE}", True)
        wave = {each.row.host: each for each in await api.read(read_wave(ONE))}
        assert wave["b"].is_own and not wave["a"].is_own
        assert await api.write(note_returned(OWNER, ("a", "b"), NOW)) == [LEFT_OUT]
        cancelling = await api.write(cancel_maintenance(ONE, NOW, BY))
        assert isinstance(cancelling, Maintenance) and cancelling.state == CANCELLING
        await api.write(return_host(OWNER, "b", "cancelled", NOW))
        await api.write(note_returned(OWNER, ("b",), NOW))
        ended = await api.write(end_maintenance(OWNER, NOW))
        assert ended is not None and ended.state == CANCELLED
        for word in (pause_maintenance(ONE, "", NOW, BY), resume_maintenance(ONE, NOW, BY)):
            assert isinstance(await api.write(word), MaintenanceRefused)

    playing(script)


def test_a_host_is_in_one_maintenance_at_a_time(playing) -> None:
    async def script(api: Api) -> None:
        await api.begin(keeps_going=True)
        other = ONE.replace("1", "2")
        again = begin_maintenance(wanted(other), {"c": "c1", "d": "c1"}, None)
        refused = await api.write(again)
        assert isinstance(refused, MaintenanceRefused) and "'c'" in refused.reason
        both = await asyncio.gather(
            *(
                api.write(begin_maintenance(wanted(ONE.replace("1", each)), {"d": "c1"}, None))
                for each in "34"
            )
        )
        assert sum(isinstance(each, Maintenance) for each in both) == 1
        assert len(await api.read(list_maintenances(10, None, True))) == 2
        assert await api.read(list_maintenances(10, None, False)) == []
        newest, oldest = await api.read(list_maintenances(10, None, None))
        assert await api.read(list_maintenances(10, (newest.began, newest.uuid), None)) == [oldest]
        assert await api.read(maintenances_of_host("c")) == [ONE]
        await api.wave("a")
        failed = HookResult("status 1", 1)
        await api.write(end_call(OWNER, "a", failed, 1, NOW))
        assert (await api.state(), (await api.states())["a"]) == (RUNNING, RETURNING)

    playing(script)
