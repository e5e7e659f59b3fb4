"""The simulated context does as processes, networks and databases do, faults included."""

import gc
import warnings
from collections.abc import Awaitable, Callable, Iterator
from random import Random
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from roost.agent.protocol.questions import Call
from roost.process.context import Context
from roost.process.logs import RequestIds, current_requests, serving
from roost.state.cell_database.tables import SCHEMA
from roost.storage import DatabaseUnavailable, OutcomeUnknown
from support.simulation.databases import SimulatedDatabase
from support.simulation.loop import Loop
from support.simulation.network import BrokenPromise, Handling, Network
from support.simulation.process import Process
from support.simulation.weather import Weather

NUMBERS = sa.table("numbers", sa.column("name"), sa.column("value"))


class Add(msgspec.Struct, frozen=True):
    """Add to a number of the database."""

    name: str
    amount: int = 1

    def __call__(self, connection: sa.Connection) -> int:
        same = NUMBERS.c.name == self.name
        connection.execute(sa.update(NUMBERS).where(same).values(value=NUMBERS.c.value + self.amount))
        return int(connection.execute(sa.select(NUMBERS.c.value).where(same)).scalar_one())


class Value(msgspec.Struct, frozen=True):
    """A number of the database."""

    name: str

    def __call__(self, connection: sa.Connection) -> int:
        return int(
            connection.execute(sa.select(NUMBERS.c.value).where(NUMBERS.c.name == self.name)).scalar_one()
        )


class Put(msgspec.Struct, frozen=True):
    """Make the table and its number."""

    name: str

    def __call__(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS numbers (name TEXT PRIMARY KEY, value INT)")
        connection.execute(sa.insert(NUMBERS), {"name": self.name, "value": 0})


class Echo(Call[str], frozen=True):
    text: str


class Echoing:
    """A service that answers at once, or by a coroutine in a process."""

    patience = 10.0
    local = False
    repeats_late = True

    def __init__(self, process: Process | None = None) -> None:
        self.process = process
        self.asked: list[str] = []

    def handle(self, asker: Process, question: Echo) -> Any:
        self.asked.append(question.text)
        if self.process is None:
            return question.text
        return Handling(self.process, _slowly(self.process.context, question.text))

    def unreachable(self, unknown: bool) -> Exception:
        return ConnectionError("unknown" if unknown else "refused")


async def _slowly(context: Context, text: str) -> str:
    await context.sleep(1.0)
    return text


class World:
    """A network with one database, and processes that do nothing."""

    def __init__(self, seed: int = 0) -> None:
        self.loop = Loop()
        self.network = Network(self.loop, Random(seed))
        self.database = SimulatedDatabase("api", (SCHEMA,), lambda: self.loop.now)
        self.network.databases["api"] = self.database
        self.database.run(Put("n"), True)
        self.answers: list[Any] = []

    def process(self, name: str = "p") -> Process:
        process = Process(name, self.network, lambda process: None)
        process.start()
        return process

    def run(self, begin: Callable[[Context], Awaitable[Any]], process: Process | None = None) -> None:
        def ended(result: Any, error: BaseException | None) -> None:
            self.answers.append(result if error is None else error)

        process = process or self.process()
        process.run("m", begin(process.context), ended)

    def pass_time(self, seconds: float = 100.0) -> None:
        self.loop.run(self.loop.now + seconds, 10_000)

    @property
    def value(self) -> int:
        return int(self.database.run(Value("n"), False))


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.network.close()


def test_what_has_not_begun_when_a_world_ends_is_no_complaint_of_a_later_test():
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        world = World()
        world.run(lambda context: _slowly(context, "late"))
        world.network.close()
        del world
        gc.collect()
    assert [str(each.message) for each in complaints] == []


def test_coroutines_have_variables_of_their_own_whichever_ends_first(world):
    async def work(context: Context, name: str, seconds: float) -> list[str]:
        seen = []
        with serving(RequestIds(name)):
            await context.sleep(seconds)
            seen += [each.own for each in current_requests()]
        return seen

    world.run(lambda context: work(context, "long", 3.0))
    world.run(lambda context: work(context, "short", 1.0))
    dies = world.process("dies")
    world.run(lambda context: work(context, "dies", 5.0), dies)
    world.pass_time(4.0)
    dies.crash()
    assert world.answers == [["short"], ["long"]]
    assert current_requests() == ()


def test_a_coroutine_reads_writes_and_asks(world):
    world.network.services["echo"] = Echoing()

    async def routine(context: Context) -> list[Any]:
        began = context.monotonic()
        added = await context.write("api", Add("n", 3))
        read = await context.read("api", Value("n"))
        echoed = await context.ask("echo", Echo("hello"))
        await context.sleep(5.0)
        took = context.monotonic() - began
        return [added, read, echoed, took > 5.0]

    world.run(routine)
    world.pass_time()
    assert world.answers == [[3, 3, "hello", True]]


def test_a_work_that_raises_writes_nothing(world):
    class AddAndFail(Add, frozen=True):
        def __call__(self, connection: sa.Connection) -> int:
            super().__call__(connection)
            raise ValueError("no")

    world.run(lambda context: context.write("api", AddAndFail("n")))
    world.pass_time()
    assert [type(each) for each in world.answers] == [ValueError]
    assert world.value == 0


@pytest.mark.parametrize(
    ("weather", "errors", "written"),
    [
        (Weather(refused=1.0), {DatabaseUnavailable}, {0}),
        (Weather(lost=1.0), {OutcomeUnknown}, {0, 1}),
        (Weather(late=1.0), {OutcomeUnknown}, {1}),
    ],
)
def test_writes_have_the_outcomes_that_real_ones_have(weather, errors, written):
    seen = set()
    for seed in range(20):
        world = World(seed)
        world.network.weather = weather
        world.run(lambda context: context.write("api", Add("n")))
        world.pass_time()
        assert {type(each) for each in world.answers} == errors
        seen.add(world.value)
        world.database.close()
    assert seen == written


def test_a_question_that_is_doubled_is_carried_out_twice_and_answered_once(world):
    service = world.network.services["echo"] = Echoing()
    world.network.weather = Weather(doubled=1.0)
    world.run(lambda context: context.ask("echo", Echo("a")))
    world.pass_time()
    assert (service.asked, world.answers) == (["a", "a"], ["a"])


def test_a_service_that_crashes_leaves_its_asker_in_doubt(world):
    server = world.process("server")
    world.network.services["echo"] = Echoing(server)
    world.run(lambda context: context.ask("echo", Echo("a")))
    world.pass_time(0.5)
    server.crash()
    world.pass_time()
    assert [str(each) for each in world.answers] == ["unknown"]
    world.run(lambda context: context.ask("echo", Echo("a")))
    world.pass_time()
    assert [str(each) for each in world.answers] == ["unknown", "refused"]


def test_a_work_that_would_repeat_itself_is_not_run_again(world):
    runs = []

    class Counting(Value, frozen=True):
        def __call__(self, connection: sa.Connection) -> int:
            runs.append(self.name)
            return super().__call__(connection)

    world.database.run(Put("other"), True)
    for _ in range(3):
        assert world.database.run(Counting("n"), False) == 0
    assert runs == ["n"]
    world.database.run(Add("n"), True)
    assert world.database.run(Counting("n"), False) == 1
    world.database.run(Put("third"), True)  # another row: the set of rows is not the same
    assert world.database.run(Counting("n"), False) == 1
    assert runs == ["n", "n", "n"]


def test_who_is_cut_off_reaches_nothing(world):
    world.network.services["echo"] = Echoing()
    world.network.cut |= {("p", "api"), ("p", "echo")}
    world.run(lambda context: context.write("api", Add("n")))
    world.run(lambda context: context.ask("echo", Echo("a")))
    world.pass_time()
    assert {type(each) for each in world.answers} == {DatabaseUnavailable, ConnectionError}
    assert world.value == 0


def test_what_a_process_sent_before_it_crashed_arrives(world):
    process = world.process()
    after = []

    async def routine(context: Context) -> None:
        await context.write("api", Add("n"))
        after.append(True)

    world.run(routine, process)
    world.loop.run(0.0, 10)
    process.crash()
    world.pass_time()
    assert (world.value, after, process.running) == (1, [], {})


def test_a_stopped_process_goes_on_with_old_answers(world):
    process = world.process()
    clocks = []

    async def routine(context: Context) -> None:
        clocks.append(context.monotonic())
        await context.sleep(1.0)
        clocks.append(context.monotonic())

    world.run(routine, process)
    world.pass_time(0.5)
    process.stop()
    world.pass_time(30.0)
    assert len(clocks) == 1
    process.go_on()
    world.pass_time(0.1)
    assert clocks[1] - clocks[0] == pytest.approx(30.5)


def test_wall_clocks_may_be_off_and_monotonic_ones_have_their_own_origin(world):
    one, other = world.process("one"), world.process("other")
    other.offset = 3600.0
    assert other.context.clock() - one.context.clock() == 3600.0
    assert other.context.monotonic() != one.context.monotonic()


def test_topics_wake_and_time_out(world):
    process = world.process()

    async def routine(context: Context) -> list[bool]:
        async def wake() -> None:
            context.wake("t")

        listener = context.listen("t")
        answers = [await listener.wait(9.0)]
        answers.append(await listener.wait(9.0))
        context.start("waker", wake())
        answers.append(await listener.wait(9.0))
        context.wake("t")
        answers.append(await context.listen("t", from_now=True).wait(9.0))
        answers.append(await listener.wait(9.0))
        return answers

    world.run(routine, process)
    world.pass_time()
    assert world.answers == [[True, False, True, False, True]]


def test_coroutines_together_and_within_a_time(world):
    closed = []
    context = world.process().context

    async def slow(seconds: float) -> float:
        try:
            await context.sleep(seconds)
        except GeneratorExit:
            closed.append(seconds)
            raise
        return seconds

    async def routine(context: Context) -> list[Any]:
        answers: list[Any] = [await context.together([slow(2.0), slow(1.0)])]
        answers.append(await context.within(5.0, slow(1.0)))
        try:
            await context.within(5.0, context.together([slow(60.0)]))
        except TimeoutError:
            answers.append("late")
        return answers

    world.run(routine)
    world.pass_time()
    assert world.answers == [[[2.0, 1.0], 1.0, "late"]]
    assert closed == [60.0]


def test_a_standby_lacks_the_last_transactions(world):
    world.database.keeps_snapshots = True
    for _ in range(4):
        world.database.run(Add("n"), True)
        world.pass_time(1.0)
    assert world.database.fail_over(1.5) >= 1.5
    assert world.value < 4
    world.database.run(Add("n"), True)


def test_an_error_that_leaves_a_started_coroutine_breaks_a_promise(world):
    process = world.process()

    async def failing() -> None:
        await process.context.sleep(1.0)
        raise ValueError("mine")

    process.run("failing", failing())
    with pytest.raises(BrokenPromise, match="failing ended with ValueError"):
        world.pass_time()
