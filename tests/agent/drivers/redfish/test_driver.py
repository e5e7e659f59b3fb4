"""Bare metal at emulated BMCs: what is switched on and off, what is kept, and what is reserved."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from roost.agent.drivers.redfish.book import Book, Entry
from roost.agent.drivers.redfish.words import FOLDER, read_statuses, send_order
from roost.agent.errors import BuildFailed, NoSuchGuest
from roost.model.errors import OperatorError
from support.redfish_emulator import Emulator
from support.redfish_hosts import (
    build,
    driver_of,
    eventually,
    is_offered,
    node_lines,
    node_of,
    reserved,
    wanted,
    write_nodes,
)

CLEANED = 'cleaning = { boot = { from = "pxe" }, seconds = 30 }'
LATE = 'cleaning = { boot = { from = "pxe" }, seconds = 0.1 }'
FOREIGN = 1


@pytest.fixture(scope="module")
def bmc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Each test has machines of its own."""
    with Emulator(tmp_path_factory.mktemp("bmc"), 20, on=frozenset({FOREIGN})) as emulator:
        yield emulator


def nodes_at(bmc: Emulator, folder: Path, *numbers: int, more: str = "") -> Path:
    return write_nodes(folder / "nodes.toml", {bmc.url: [node_lines(number, more) for number in numbers]})


def target_of(bmc: Emulator, number: int) -> str:
    return bmc.system(number)["Boot"]["BootSourceOverrideTarget"]


async def switch_off_when_seen(bmc: Emulator, state: Path, number: int) -> None:
    """Play the image that cleans."""
    await eventually(lambda: bmc.is_on(number) and read_statuses(state).nodes[0].on is True)
    bmc.switch(number, False)


def test_instance_is_a_machine_that_boots_from_the_network_and_runs(bmc: Emulator, tmp_path: Path) -> None:
    async def run() -> None:
        async with driver_of(nodes_at(bmc, tmp_path, 0), tmp_path) as driver:
            assert reserved(driver, 0) == 0
            await driver.prepare(wanted("i", 0))
            assert target_of(bmc, 0) == "Pxe"
            assert (bmc.is_on(0), driver.guests(), reserved(driver, 0)) == (False, {}, 1)
            await driver.start(wanted("i", 0))
            assert (bmc.is_on(0), driver.guests(), reserved(driver, 0)) == (True, {"i": 1}, 1)
            await driver.destroy("i")
            assert (bmc.is_on(0), driver.guests(), reserved(driver, 0)) == (False, {}, 0)
            assert target_of(bmc, 0) == "Hdd"
            await driver.destroy("i")

    asyncio.run(run())


def test_stopped_machine_is_off_until_it_is_started_also_for_a_later_agent(
    bmc: Emulator, tmp_path: Path
) -> None:
    async def run() -> None:
        nodes = nodes_at(bmc, tmp_path, 14)
        async with driver_of(nodes, tmp_path) as driver:
            await build(driver, wanted("i", 14))
            for _ in range(2):
                await driver.stop("i")
                assert (bmc.is_on(14), driver.guests(), reserved(driver, 14)) == (False, {}, 1)
            with pytest.raises(NoSuchGuest):
                await driver.stop("another")
        async with driver_of(nodes, tmp_path) as driver:
            assert (driver.guests(), reserved(driver, 14)) == ({}, 1)
            with pytest.raises(NoSuchGuest):
                await driver.start_again(wanted("i", 14, 2))
            for _ in range(2):
                await driver.start_again(wanted("i", 14))
                assert (bmc.is_on(14), driver.guests()) == (True, {"i": 1})
            await driver.stop("i")
            # Somebody switches it on by hand.
            bmc.switch(14, True)
            await eventually(lambda: driver.guests() == {"i": 1})
            await driver.stop("i")
            assert (bmc.is_on(14), driver.guests()) == (False, {})
            await driver.destroy("i")
            assert reserved(driver, 14) == 0

    asyncio.run(run())


def test_prepared_machine_that_is_stopped_is_never_switched_on(bmc: Emulator, tmp_path: Path) -> None:
    async def run() -> None:
        async with driver_of(nodes_at(bmc, tmp_path, 15), tmp_path) as driver:
            await driver.prepare(wanted("i", 15))
            await driver.stop("i")
            assert (bmc.is_on(15), driver.guests(), reserved(driver, 15)) == (False, {}, 1)
            await driver.start_again(wanted("i", 15))
            assert (bmc.is_on(15), driver.guests()) == (True, {"i": 1})
            await driver.destroy("i")
            assert target_of(bmc, 15) == "Hdd"

    asyncio.run(run())


def test_machine_that_is_on_for_nobody_here_is_reserved_and_stays_on(bmc: Emulator, tmp_path: Path) -> None:
    async def run() -> None:
        async with driver_of(nodes_at(bmc, tmp_path, FOREIGN), tmp_path) as driver:
            assert reserved(driver, FOREIGN) == 1
            with pytest.raises(BuildFailed, match="switched on") as failed:
                await driver.prepare(wanted("i", FOREIGN))
            assert failed.value.retryable
            await driver.destroy("i")
            assert bmc.is_on(FOREIGN)

    asyncio.run(run())


@pytest.mark.parametrize(("phase", "on", "runs"), [("starting", True, True), ("starting", False, False)])
def test_start_that_an_end_of_the_agent_interrupts_is_taken_up(
    bmc: Emulator, tmp_path: Path, phase: str, on: bool, runs: bool
) -> None:
    number = 2 + on

    async def run() -> None:
        Book(tmp_path / FOLDER / "book").put(node_of(number), Entry(phase, "i", 1))
        bmc.switch(number, on)
        async with driver_of(nodes_at(bmc, tmp_path, number), tmp_path) as driver:
            assert driver.guests() == ({"i": 1} if runs else {})
            assert reserved(driver, number) == 1
            await build(driver, wanted("i", number))
            assert (bmc.is_on(number), driver.guests()) == (True, {"i": 1})

    asyncio.run(run())


def test_machine_that_somebody_switches_on_before_is_not_touched(bmc: Emulator, tmp_path: Path) -> None:
    async def run() -> None:
        Book(tmp_path / FOLDER / "book").put(node_of(4), Entry("building", "i", 1))
        bmc.switch(4, True)
        async with driver_of(nodes_at(bmc, tmp_path, 4), tmp_path) as driver:
            with pytest.raises(BuildFailed, match="switched on"):
                await driver.prepare(wanted("i", 4))
            await driver.destroy("i")
            assert (bmc.is_on(4), reserved(driver, 4)) == (True, 1)

    asyncio.run(run())


def test_guests_outlive_the_agent_and_its_knowledge_of_their_power(bmc: Emulator, tmp_path: Path) -> None:
    async def run() -> None:
        nodes = nodes_at(bmc, tmp_path, 5)
        async with driver_of(nodes, tmp_path) as driver:
            await build(driver, wanted("i", 5, attempt=3))
        bmc.switch(5, False)
        async with driver_of(nodes, tmp_path) as driver:
            assert (driver.guests(), reserved(driver, 5)) == ({"i": 3}, 1)

    asyncio.run(run())


def test_later_attempt_on_another_node_ends_what_an_earlier_one_left(bmc: Emulator, tmp_path: Path) -> None:
    async def run() -> None:
        Book(tmp_path / FOLDER / "book").put(node_of(6), Entry("starting", "i", 1))
        bmc.switch(6, True)
        async with driver_of(nodes_at(bmc, tmp_path, 6, 7), tmp_path) as driver:
            await build(driver, wanted("i", 7, attempt=2))
            assert driver.guests() == {"i": 2}
            assert (bmc.is_on(6), bmc.is_on(7), reserved(driver, 6)) == (False, True, 0)

    asyncio.run(run())


def test_node_is_taken_once(bmc: Emulator, tmp_path: Path) -> None:
    async def run() -> None:
        async with driver_of(nodes_at(bmc, tmp_path, 8), tmp_path) as driver:
            await build(driver, wanted("i", 8))
            with pytest.raises(BuildFailed, match="has instance i"):
                await driver.prepare(wanted("other", 8))
            await driver.destroy("other")
            assert (bmc.is_on(8), driver.guests()) == (True, {"i": 1})

    asyncio.run(run())


def test_machine_is_reserved_until_what_cleans_it_switches_it_off(bmc: Emulator, tmp_path: Path) -> None:
    async def run() -> None:
        nodes = nodes_at(bmc, tmp_path, 9, more=CLEANED)
        async with driver_of(nodes, tmp_path) as driver:
            await build(driver, wanted("i", 9))
            await driver.destroy("i")
            await eventually(lambda: bmc.is_on(9))
            assert (driver.guests(), reserved(driver, 9)) == ({}, 1)
            with pytest.raises(BuildFailed, match="being cleaned after instance i"):
                await driver.prepare(wanted("next", 9))
        async with driver_of(nodes, tmp_path) as driver:
            # The agent was killed meanwhile: the cleaning begins anew, with a machine that may still be on.
            while reserved(driver, 9):
                await asyncio.sleep(0.5)
                if bmc.is_on(9):
                    bmc.switch(9, False)
            assert not bmc.is_on(9)

    asyncio.run(run())


@pytest.mark.parametrize(("number", "ends"), [(16, "destroyed"), (17, "stopped")])
def test_instance_that_is_rebuilt_has_its_machine_again_once_that_is_clean(
    bmc: Emulator, tmp_path: Path, number: int, ends: str
) -> None:
    async def run() -> None:
        nodes = nodes_at(bmc, tmp_path, number, more=CLEANED)
        async with driver_of(nodes, tmp_path) as driver:
            await build(driver, wanted("i", number))
            await (driver.destroy("i") if ends == "destroyed" else driver.stop("i"))
            building = asyncio.create_task(build(driver, wanted("i", number, 2)))
            await switch_off_when_seen(bmc, tmp_path, number)
            await building
            assert (bmc.is_on(number), driver.guests()) == (True, {"i": 2})

    asyncio.run(run())


@pytest.mark.parametrize("word", ["clean", "release"])
def test_machine_that_was_not_cleaned_waits_for_an_operator(bmc: Emulator, tmp_path: Path, word: str) -> None:
    number = {"clean": 10, "release": 11}[word]

    async def run() -> None:
        async with driver_of(nodes_at(bmc, tmp_path, number, more=LATE), tmp_path) as driver:
            await build(driver, wanted("i", number))
            await driver.destroy("i")
            await eventually(lambda: read_statuses(tmp_path).nodes[0].phase == "uncleaned")
            [told] = read_statuses(tmp_path).nodes
            assert "did not switch the machine off within 0.1 s" in told.why
            assert (bmc.is_on(number), reserved(driver, number)) == (False, 1)
        nodes = nodes_at(bmc, tmp_path, number, more=CLEANED)
        async with driver_of(nodes, tmp_path) as driver:
            assert reserved(driver, number) == 1
            send_order(tmp_path, f"n{number}", word)
            if word == "clean":
                await eventually(lambda: target_of(bmc, number) == "Pxe")
                assert reserved(driver, number) == 1
                await switch_off_when_seen(bmc, tmp_path, number)
            await is_offered(driver, number)
            await eventually(lambda: read_statuses(tmp_path).nodes[0].phase == "free")
            with pytest.raises(OperatorError, match=f"is free: there is nothing to {word}"):
                send_order(tmp_path, node_of(number), word)

    asyncio.run(run())


def test_node_in_maintenance_is_reserved(bmc: Emulator, tmp_path: Path) -> None:
    async def run() -> None:
        nodes = nodes_at(bmc, tmp_path, 12, more='maintenance = "a fan"')
        async with driver_of(nodes, tmp_path) as driver:
            with pytest.raises(BuildFailed, match="maintenance: a fan"):
                await driver.prepare(wanted("i", 12))
            assert reserved(driver, 12) == 1

    asyncio.run(run())


def test_build_that_is_ended_in_the_middle_leaves_the_machine_off(bmc: Emulator, tmp_path: Path) -> None:
    async def run() -> None:
        async with driver_of(nodes_at(bmc, tmp_path, 13), tmp_path, power=1.0) as driver:
            for pause in (0, 5, 10, 20):
                order = wanted("i", 13)
                await driver.prepare(order)
                starting = asyncio.create_task(driver.start(order))
                await asyncio.sleep(pause / 1000)
                starting.cancel()
                await asyncio.wait([starting])
                await driver.destroy("i")
                assert (driver.guests(), reserved(driver, 13)) == ({}, 0)
                assert not bmc.is_on(13)

    asyncio.run(run())


def test_file_that_no_longer_names_the_node_of_an_instance_is_refused(bmc: Emulator, tmp_path: Path) -> None:
    async def run() -> None:
        async with driver_of(nodes_at(bmc, tmp_path, 14), tmp_path) as driver:
            await build(driver, wanted("i", 14))
        with pytest.raises(OperatorError, match=f"node {node_of(14)} has instance i"):
            async with driver_of(nodes_at(bmc, tmp_path, 15), tmp_path):
                pass

    asyncio.run(run())


def test_amounts_are_those_of_the_bmc_or_else_those_of_the_file(bmc: Emulator, tmp_path: Path) -> None:
    async def run() -> None:
        nodes = nodes_at(bmc, tmp_path, 16, more="cpus = 8\nmemory_mb = 1024\ndisk_gb = 3")
        async with driver_of(nodes, tmp_path):
            await eventually((tmp_path / FOLDER / "nodes.json").exists)
            told = msgspec.structs.asdict(read_statuses(tmp_path).nodes[0])
            assert [told[name] for name in ("cpus", "memory_mb", "disk_gb")] == [8, 1024, 3]

    asyncio.run(run())
