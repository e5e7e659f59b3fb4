"""The program of agents: tokens from a file, drivers by name, guests and state that outlive the agent."""

import asyncio
import os
from pathlib import Path

import pytest

from roost.agent.drivers.driver_loader import load_driver
from roost.agent.drivers.simulated import SimulatedDriver
from roost.agent.errors import BuildFailed, StateUnusable
from roost.agent.persistent_state import (
    KeptSession,
    StateDirectory,
    accept,
)
from roost.agent.program import read_tokens
from roost.model.errors import OperatorError
from roost.process.option_source import Setting, Source
from support.cells import instance


def test_tokens_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("# of rack 1\n\na one\nb  two\n")
    assert read_tokens(path, ["b"]) == {"b": "two"}
    with pytest.raises(OperatorError, match=r"tokens has no token of host c and 1 more$"):
        read_tokens(path, ["a", "c", "d"])
    path.write_text("a one two\n")
    with pytest.raises(OperatorError, match=r"line 1 of .* is not a host and its token"):
        read_tokens(path, ["a"])
    with pytest.raises(OperatorError, match="cannot be read"):
        read_tokens(tmp_path / "none", ["a"])


def test_driver_is_an_entry_point_or_an_attribute() -> None:
    make = load_driver("simulated")(Source(settings=(Setting("simulated", "vcpus", "3"),)))
    assert callable(make)
    assert load_driver(f"{__name__}:driver_of_tests") is driver_of_tests
    with pytest.raises(OperatorError, match=r"there is no driver libvrit; there are: .*simulated"):
        load_driver("libvrit")
    for name in ("json:nothing", "no_such_module:x"):
        with pytest.raises(OperatorError, match=f"the driver {name} cannot be loaded"):
            load_driver(name)


def driver_of_tests(source: Source) -> None:
    return None


def test_guests_of_a_simulated_host_outlive_its_agent(tmp_path: Path) -> None:
    def begun() -> SimulatedDriver:
        driver = load_driver("simulated")(Source())("a", tmp_path)
        assert isinstance(driver, SimulatedDriver)
        return driver

    async def run() -> None:
        first = begun()
        for uuid in ("i", "j", "k"):
            await first.prepare(instance(uuid))
        await first.start(instance("i"))
        await first.start(instance("j"))
        await first.destroy("j")
        (tmp_path / "guests" / "x.new").write_text("half")
        second = begun()
        # What the cell says does not make a guest: the host knows what runs.
        await second.recover([instance("other")])
        assert second.guests() == {"i": 1}

    asyncio.run(run())


def test_failures_of_a_simulated_host_are_drawn(tmp_path: Path) -> None:
    always = Source(settings=(Setting("simulated", "failure_rate", "1.0"),))
    driver = load_driver("simulated")(always)("a", tmp_path)
    with pytest.raises(BuildFailed):
        asyncio.run(driver.prepare(instance()))


@pytest.mark.parametrize("umask", [0, 0o077])
def test_files_of_an_agent_are_its_owners_alone(tmp_path: Path, umask: int) -> None:
    """Its tokens prove the host; a directory that others may enter must not let them read any."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    earlier = folder / "tokens.json"
    earlier.write_text("[]")
    earlier.chmod(0o644)
    before = os.umask(umask)
    try:
        state = StateDirectory(folder)
        asyncio.run(state.keep_token("one"))
        asyncio.run(state.keep_session(KeptSession()))
        state.close()
    finally:
        os.umask(before)
    modes = {each.name: each.stat().st_mode & 0o777 for each in folder.iterdir()}
    assert modes == {"lock": 0o600, "session.json": 0o600, "tokens.json": 0o600}


def test_new_token_of_the_operator_is_used_before_the_kept_ones(tmp_path: Path) -> None:
    """So that its use ends them: one of them may be known to somebody else."""
    state = StateDirectory(tmp_path)
    state.take_given("given")
    for token in ("one", "two"):
        asyncio.run(state.keep_token(token))
    state.close()
    for given, expected in (
        ("given", ("two", "one")),
        ("newer", ("newer", "two", "one")),
        ("newer", ("newer", "two", "one")),
    ):
        state = StateDirectory(tmp_path)
        state.take_given(given)
        assert state.tokens == expected
        state.close()
    state = StateDirectory(tmp_path)
    asyncio.run(state.keep_token("three"))
    state.take_given("newer")
    assert state.tokens == ("three", "newer")
    state.close()


def test_state_directory_is_one_agents_and_keeps_what_it_was_told(tmp_path: Path) -> None:
    async def run() -> None:
        state = StateDirectory(tmp_path / "state")
        await state.keep_session(KeptSession(nonces=("n",), held="restored"))
        for token in ("one", "two", "three"):
            await state.keep_token(token)
        with pytest.raises(StateUnusable, match="another agent uses the state directory"):
            StateDirectory(tmp_path / "state")
        with pytest.raises(StateUnusable, match="another agent"):
            accept(tmp_path / "state")
        state.close()
        accept(tmp_path / "state")
        again = StateDirectory(tmp_path / "state")
        # A new nonce could not take the session over at once.
        assert await again.load_session() == KeptSession(nonces=("n",), accepted=True)
        assert again.tokens == ("three", "two")
        again.close()
        (tmp_path / "state" / "tokens.json").write_text("[")
        with pytest.raises(StateUnusable, match=r"tokens\.json cannot be read"):
            StateDirectory(tmp_path / "state")
        (tmp_path / "state" / "tokens.json").unlink()
        StateDirectory(tmp_path / "state").close()

    asyncio.run(run())
