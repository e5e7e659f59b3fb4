"""A daemon of libvirt that dies and comes back: the driver says so, builds nothing meanwhile, and goes on."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.agent.drivers.libvirt.connection import LibvirtConnection
from roost.agent.drivers.libvirt.driver import LibvirtDriver
from roost.agent.drivers.libvirt.guest_options import DriverOptions
from roost.agent.drivers.libvirt.images import DiskOptions
from roost.agent.errors import BuildFailed, HypervisorAway
from support.libvirt_daemon import NEEDS_DAEMON, Daemon, opened_daemon
from support.libvirt_hosts import instance_of, needs_libvirt

needs_libvirt()

pytestmark = [pytest.mark.nightly, *NEEDS_DAEMON]


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with opened_daemon() as running:
        yield running


def test_a_daemon_that_dies_is_told_and_its_connection_is_opened_again(
    daemon: Daemon, tmp_path: Path
) -> None:
    async def run() -> None:
        options = DriverOptions(disks=DiskOptions(tmp_path), refresh_seconds=0.0)
        there = LibvirtDriver("a", options, LibvirtConnection(daemon.uri, 20.0))
        await there.prepare(instance_of("i"))
        await there.start(instance_of("i"))
        assert there.guests() == {"i": 1}
        daemon.kill()
        with pytest.raises(HypervisorAway):
            await there.recover(())
        with pytest.raises(HypervisorAway):
            there.guests()
        with pytest.raises(BuildFailed) as failed:
            await there.prepare(instance_of("j"))
        assert (failed.value.code, failed.value.retryable) == ("HypervisorAway", True)
        daemon.begin()
        # The test hypervisor has forgotten its guests.
        await there.recover(())
        assert there.guests() == {}
        await there.prepare(instance_of("j"))
        await there.start(instance_of("j"))
        assert there.guests() == {"j": 1}

    asyncio.run(run())


def test_a_connection_that_is_lost_between_two_calls_is_not_noticed(daemon: Daemon, tmp_path: Path) -> None:
    async def run() -> None:
        options = DriverOptions(disks=DiskOptions(tmp_path), refresh_seconds=0.0)
        there = LibvirtDriver("a", options, LibvirtConnection(daemon.uri, 20.0))
        daemon.kill()
        daemon.begin()
        await there.prepare(instance_of("i"))
        await there.start(instance_of("i"))
        assert there.guests() == {"i": 1}

    asyncio.run(run())


def test_a_daemon_that_answers_nothing_is_not_waited_for(daemon: Daemon, tmp_path: Path) -> None:
    async def run() -> None:
        options = DriverOptions(disks=DiskOptions(tmp_path), refresh_seconds=0.0)
        connection = LibvirtConnection(daemon.uri, 1.0)
        there = LibvirtDriver("a", options, connection)
        daemon.stop()
        with pytest.raises(HypervisorAway, match="does not answer within 1 seconds"):
            await there.recover(())
        daemon.go_on()
        await there.recover(())
        assert there.guests() == {}
        connection.close()

    asyncio.run(run())
