"""The fence of a host: its options, what is kept of it, its watchdog, and drivers that cannot have one."""

import asyncio
import errno
import os
import struct
from pathlib import Path

import pytest

from roost.agent import persistent_state
from roost.agent.drivers.driver_loader import load_driver
from roost.agent.options import AgentOptions
from roost.agent.persistent_state import StateDirectory
from roost.agent.program import check_fence
from roost.agent.watchdog import DeviceWatchdog
from roost.model.errors import OperatorError
from roost.model.fence import Fence, needed_silence
from roost.process.option_source import Setting, Source


def options(**named):
    return Source(settings=tuple(Setting("agent", each, value) for each, value in named.items())).read(
        AgentOptions
    )


def test_there_is_no_fence_by_default():
    assert options().fence.fence is None


def test_the_cell_is_told_whether_a_watchdog_guards_the_fence():
    assert options(fence_seconds="90").fence.fence == Fence(90.0, 60.0)
    guarded = options(fence_seconds="90", fence_stop_seconds="30", fence_watchdog="/dev/watchdog")
    assert guarded.fence.fence == Fence(90.0, 30.0, guarded=True)


def test_a_time_in_which_no_answer_may_be_lost_is_refused():
    with pytest.raises(OperatorError, match="20 seconds or more"):
        options(fence_seconds="5")


def test_conductors_wait_for_both_times_the_rate_of_clocks_and_a_margin():
    assert needed_silence(Fence(100.0, 60.0)) == pytest.approx(160.0 * 1.01 + 5.0)


class Stubborn:
    """A driver whose guests cannot be stopped within a time."""

    power_off_seconds = None

    async def power_off(self, instance):
        """Do nothing."""


def test_a_driver_that_cannot_stop_its_guests_in_time_has_no_fence(tmp_path):
    simulated = load_driver("simulated")(Source())("a", tmp_path)
    check_fence(Fence(60.0, 4.0), [simulated])
    with pytest.raises(OperatorError, match=r"\[agent\] fence_seconds is set, and the driver cannot stop"):
        check_fence(Fence(60.0, 60.0), [Stubborn()])
    with pytest.raises(OperatorError, match=r"fence_stop_seconds 1 is too short.*set it to 2 or more"):
        check_fence(Fence(60.0, 1.0), [simulated])
    with pytest.raises(OperatorError, match="for the agent of one host"):
        check_fence(Fence(60.0, 60.0, guarded=True), [simulated, simulated])


def test_the_last_answer_counts_until_the_machine_is_started_again(tmp_path, monkeypatch):
    boot = tmp_path / "boot_id"
    boot.write_text("one\n")
    monkeypatch.setattr(persistent_state, "_BOOT", boot)

    async def run():
        state = StateDirectory(tmp_path / "state")
        assert await state.load_answered() is None
        await state.keep_answered(12.5)
        await state.keep_fenced({"i": 2})
        state.close()
        state = StateDirectory(tmp_path / "state")
        assert await state.load_answered() == 12.5
        boot.write_text("two\n")
        assert await state.load_answered() is None
        # What it has stopped is told also after that.
        assert await state.load_fenced() == {"i": 2}
        await state.keep_answered(1.0)
        await state.keep_answered(None)
        assert await state.load_answered() is None
        state.close()

    asyncio.run(run())


def written(path: Path) -> bytes:
    return path.read_bytes()


def granting(seconds):
    """A device that resets the machine after so many seconds."""
    return lambda device, request, wanted: struct.pack("i", seconds)


def test_a_watchdog_is_touched_and_disarmed_at_an_orderly_end(tmp_path):
    path = tmp_path / "watchdog"
    path.touch()
    watchdog = DeviceWatchdog(path, 30, granting(30))
    asyncio.run(watchdog.touch())
    watchdog.disarm()
    assert written(path) == b"\0V"


def test_a_watchdog_that_is_left_stays_armed(tmp_path):
    path = tmp_path / "watchdog"
    path.touch()
    DeviceWatchdog(path, 30, granting(20)).leave()
    assert written(path) == b""


def test_a_watchdog_that_is_too_slow_or_none_is_refused_and_disarmed(tmp_path):
    path = tmp_path / "watchdog"
    path.touch()
    with pytest.raises(OperatorError, match=r"after 45 seconds.*set fence_stop_seconds to 90 or more"):
        DeviceWatchdog(path, 30, granting(45))
    assert written(path) == b"V"

    def refused(*_):
        raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))

    with pytest.raises(OperatorError, match="takes no timeout"):
        DeviceWatchdog(path, 30, refused)
    with pytest.raises(OperatorError, match="cannot be opened"):
        DeviceWatchdog(tmp_path / "none", 30)
