"""The process of agents: one host, or many simulated ones, each with its own connection, token and state."""

import asyncio
import resource
import signal
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from roost.agent.drivers import Driver, power_off_seconds
from roost.agent.drivers.driver_loader import load_driver
from roost.agent.hosted_agents import HostedAgents
from roost.agent.neighbours.attaching_driver import AttachingDriver
from roost.agent.neighbours.options import configured_neighbours
from roost.agent.options import AgentOptions, FenceOptions
from roost.agent.persistent_state import StateDirectory
from roost.agent.protocol.client import HttpEndpoint, tls_context
from roost.agent.provider_config import read_provider_config
from roost.agent.watchdog import DeviceWatchdog
from roost.model.errors import OperatorError
from roost.model.fence import Fence
from roost.process.option_source import Source

FILES_OF_A_HOST = 8
"""File descriptors that a host needs: its lock, its connections, a file that is written."""


class AgentPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts, endpoint, credentials and driver of a process of agents.

    ``hosts``: the state directory of each host. ``endpoint``: the root URL of the cell's endpoint.
    ``tokens``: by host, as the operator has given them. ``authority``, ``certificate`` and ``key``: files in
    PEM.
    """

    hosts: Mapping[str, Path]
    endpoint: str
    tokens: Mapping[str, str]
    source: Source
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    driver: str | None = None


def read_tokens(path: Path, hosts: Sequence[str]) -> dict[str, str]:
    """Read the tokens of hosts from a file with one host and its token a line. Raises `OperatorError`."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"the file of tokens {path} cannot be read: {error}") from error
    found = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2:
            raise OperatorError(f"line {number} of {path} is not a host and its token")
        found[words[0]] = words[1]
    missing = [host for host in hosts if host not in found]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise OperatorError(f"{path} has no token of host {missing[0]}{more}")
    return {host: found[host] for host in hosts}


async def run_agents(plan: AgentPlan, on_ready: Callable[[], None]) -> None:
    """Run agents until SIGTERM, SIGINT or SIGHUP, and close their sessions then.

    ``on_ready`` is called when the first poll and report of each host have ended, with success or not.

    Raises:
        OperatorError: a state directory, a file of TLS or of providers, or an option cannot be used.
    """
    options = plan.source.read(AgentOptions)
    make = load_driver(plan.driver or options.driver)(plan.source)
    location = options.provider_config_location
    config = read_provider_config(Path(location)) if location else None
    context = _context(plan)
    _allow_files(FILES_OF_A_HOST * len(plan.hosts))
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with AsyncExitStack() as stack:
        neighbours = configured_neighbours(plan.source)
        stack.push_async_callback(neighbours.close)
        hosts = []
        for host, directory in plan.hosts.items():
            state = StateDirectory(directory)
            stack.callback(state.close)
            state.take_given(plan.tokens[host])
            endpoint = HttpEndpoint(plan.endpoint, _tokens(state, plan.tokens[host]), context)
            stack.push_async_callback(endpoint.close)
            driver = make(host, directory)
            if near := neighbours.of(host):
                driver = AttachingDriver(driver, near, directory)
            hosts.append((host, endpoint, driver, state))
        fence, watchdog = options.fence.fence, None
        if fence is not None:
            check_fence(fence, [driver for _, _, driver, _ in hosts])
            watchdog = _watchdog(options.fence, fence)
        hosting = HostedAgents(hosts, times=options.times, config=config, fence=fence, watchdog=watchdog)
        running = asyncio.create_task(hosting.run())
        starting = asyncio.create_task(_announce(hosting, on_ready))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
        except BaseException:
            await hosting.release_watchdog()
            raise
        finally:
            tasks = (running, starting, stopping)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await hosting.leave()


def check_fence(fence: Fence, drivers: Sequence[Driver]) -> None:
    """Raise `OperatorError` for a fence that the drivers of the hosts of a process cannot have."""
    for driver in drivers:
        seconds = power_off_seconds(driver)
        if seconds is None:
            raise OperatorError(
                "[agent] fence_seconds is set, and the driver cannot stop all guests of the host by itself "
                "within a certain time: leave it out"
            )
        # The watchdog has half of the time.
        if seconds > fence.stop_seconds / 2:
            raise OperatorError(
                f"[agent] fence_stop_seconds {fence.stop_seconds:g} is too short: the driver needs up to "
                f"{seconds:g} seconds to stop the guests, so set it to {2 * seconds:g} or more"
            )
    if fence.guarded and len(drivers) > 1:
        raise OperatorError("[agent] fence_watchdog is for the agent of one host, and not for --hosts")


def _watchdog(options: FenceOptions, fence: Fence) -> DeviceWatchdog | None:
    if options.watchdog is None:
        return None
    return DeviceWatchdog(Path(options.watchdog), int(fence.stop_seconds / 2))


async def _announce(hosting: HostedAgents, on_ready: Callable[[], None]) -> None:
    await hosting.started()
    on_ready()


def _tokens(state: StateDirectory, given: str) -> Callable[[], Sequence[str]]:
    """Return a function for the tokens of a host: first the kept ones, then the operator's."""
    return lambda: (*state.tokens, given)


def _context(plan: AgentPlan) -> ssl.SSLContext | bool:
    if not plan.endpoint.startswith("https:"):
        return False
    try:
        return tls_context(plan.authority, plan.certificate, plan.key)
    except OSError as error:
        named = ", ".join(str(each) for each in (plan.authority, plan.certificate, plan.key) if each)
        raise OperatorError(f"TLS: {named or 'the authorities of the system'}: {error}") from error


def _allow_files(needed: int) -> None:
    """Raise the limit of open files as far as the process may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed + 256:
        wanted = needed + 256 if hard == resource.RLIM_INFINITY else min(hard, needed + 256)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(wanted, soft), hard))
