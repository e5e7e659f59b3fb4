"""A BMC that does not answer, or lets nobody in."""

import asyncio
from pathlib import Path

import pytest
import structlog.testing

from roost.agent.drivers.redfish.errors import BmcSilent
from roost.agent.drivers.redfish.nodes_file import read_nodes_file
from roost.agent.drivers.redfish.words import read_statuses
from roost.agent.errors import BuildFailed
from roost.bench.loopback import free_port
from roost.model.errors import OperatorError
from support.redfish_emulator import Emulator
from support.redfish_hosts import (
    build,
    driver_of,
    eventually,
    is_offered,
    node_lines,
    reserved,
    wanted,
    write_nodes,
)


def test_nodes_of_a_bmc_that_is_silent_are_reserved_until_it_answers(tmp_path: Path) -> None:
    async def run() -> None:
        with Emulator(tmp_path, 2) as bmc:
            nodes = write_nodes(tmp_path / "nodes.toml", {bmc.url: [node_lines(0), node_lines(1)]})
            async with driver_of(nodes, tmp_path) as driver:
                await build(driver, wanted("i", 0))
                with structlog.testing.capture_logs() as logs:
                    bmc.stop()
                    await is_offered(driver, 1, offered=False)
                    # Its instance is there all the same: only a BMC can tell that it is not.
                    assert (driver.guests(), reserved(driver, 0)) == ({"i": 1}, 1)
                    with pytest.raises(BuildFailed, match="does not answer") as failed:
                        await driver.prepare(wanted("other", 1))
                    assert failed.value.retryable
                    await eventually(lambda: "does not answer" in read_statuses(tmp_path).nodes[1].why)
                    bmc.start()
                    await is_offered(driver, 1)
                *begun, over = [each["event"] for each in logs if "BMC" in each["event"]]
                # Each of the two nodes may be seen to fail first.
                assert len(begun) <= 2
                assert set(begun) == {"a BMC does not tell the power of its nodes"}
                assert over == "a BMC tells the power of its nodes again"

    asyncio.run(run())


def test_a_wrong_password_is_told_without_it(tmp_path: Path) -> None:
    async def run() -> None:
        users = tmp_path / "users"
        # The hash of "right", by bcrypt.
        users.write_text("root:$2y$05$2cWzS8cnp8VnTJNIuMBnIOBHYCQW2lmYHlnKaIgDaKCYQ8Oi2hH4e\n")
        (tmp_path / "password").write_text("wrong-password\n")
        with Emulator(tmp_path, 1, users=users) as bmc:
            nodes = write_nodes(tmp_path / "nodes.toml", {bmc.url: [node_lines(0)]})
            text = nodes.read_text().replace(
                f'endpoint = "{bmc.url}"',
                f'endpoint = "{bmc.url}"\nusername = "root"\npassword_file = "{tmp_path / "password"}"',
            )
            nodes.write_text(text)
            async with driver_of(nodes, tmp_path) as driver:
                assert reserved(driver, 0) == 1
                await eventually((tmp_path / "redfish" / "nodes.json").exists)
                [told] = read_statuses(tmp_path).nodes
                assert "power is not known" in told.why
                assert "wrong-password" not in told.why

    asyncio.run(run())


def test_a_build_that_a_silent_bmc_ends_leaves_its_node_free(tmp_path: Path) -> None:
    async def run() -> None:
        with Emulator(tmp_path, 1) as bmc:
            nodes = write_nodes(tmp_path / "nodes.toml", {bmc.url: [node_lines(0)]})
            async with driver_of(nodes, tmp_path) as driver:
                instance = wanted("i", 0)
                await driver.prepare(instance)
                bmc.stop()
                with pytest.raises(BuildFailed, match="does not answer"):
                    await driver.start(instance)
                # It may have been switched on, so it is not given up before it is seen.
                with pytest.raises(BmcSilent):
                    await driver.destroy("i")
                bmc.start()
                await driver.destroy("i")
                await is_offered(driver, 0)
                await driver.prepare(wanted("next", 0))
                bmc.stop()
                # Nothing was switched on for this one.
                with structlog.testing.capture_logs() as logs:
                    await driver.destroy("next")
                assert "the boot of a node could not be set back" in [each["event"] for each in logs]
                bmc.start()
                await is_offered(driver, 0)

    asyncio.run(run())


def test_authorities_that_cannot_be_read_keep_no_other_bmc_from_being_watched(tmp_path: Path) -> None:
    async def run() -> None:
        authorities = tmp_path / "authorities.pem"
        authorities.touch()
        with Emulator(tmp_path, 2) as bmc:
            url = f"https://127.0.0.1:{free_port()}"
            nodes = write_nodes(tmp_path / "nodes.toml", {url: [node_lines(0)], bmc.url: [node_lines(1)]})
            endpoint = f'endpoint = "{url}"'
            nodes.write_text(nodes.read_text().replace(endpoint, f'{endpoint}\nverify = "{authorities}"'))
            async with driver_of(nodes, tmp_path) as driver:
                await is_offered(driver, 1)
                authorities.unlink()
                await eventually(lambda: "cannot be asked" in read_statuses(tmp_path).nodes[0].why)
                bmc.stop()
                await is_offered(driver, 1, offered=False)
                bmc.start()
                await is_offered(driver, 1)

    asyncio.run(run())


def test_authorities_that_are_not_there_are_an_error_of_the_file(tmp_path: Path) -> None:
    nodes = write_nodes(tmp_path / "nodes.toml", {"https://127.0.0.1:1": [node_lines(0)]})
    nodes.write_text(nodes.read_text().replace(':1"', ':1"\nverify = "/no/such/ca.pem"'))
    with pytest.raises(OperatorError, match=r"verify: /no/such/ca.pem cannot be read"):
        read_nodes_file(nodes, "host")
