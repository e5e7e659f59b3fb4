"""Checks of `roost agent`: its options, tokens and directories, and the endpoint of its cell."""

import asyncio
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import msgspec

from roost.agent.drivers.driver_loader import BUILT_IN, load_driver
from roost.agent.errors import StateUnusable
from roost.agent.options import AgentOptions
from roost.agent.persistent_state import StateDirectory, kept_session
from roost.agent.program import read_tokens
from roost.agent.protocol.client import HttpEndpoint, tls_context
from roost.agent.protocol.errors import AccessRefused, AgentProtocolError, EndpointUnavailable, SessionLost
from roost.agent.protocol.exposure import CHANGE, exposure_of
from roost.agent.protocol.questions import ReadTree
from roost.agent.protocol.types import SessionKey
from roost.agent.provider_config import read_provider_config
from roost.cli.configuration import options_without_effect
from roost.cli.doctor.check import ANSWER_SECONDS, DoctorCheck, DoctorVerdict, NotKnown
from roost.cli.doctor.configuration import judge_files
from roost.model.names import provider_uuid
from roost.model.text import fault_of
from roost.process.option_source import Source

TRIED = 20
"""Most hosts whose tokens are tried."""


class CheckedAgent(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `roost agent`: see `roost.agent.program.AgentPlan`."""

    hosts: Mapping[str, Path]
    endpoint: str
    token_file: Path
    source: Source
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    driver: str | None = None

    @property
    def tokens(self) -> dict[str, str]:
        """Read the tokens of the token file, by host. Raises `OperatorError`."""
        return read_tokens(self.token_file, list(self.hosts))

    @property
    def verify(self) -> ssl.SSLContext | bool:
        """Return the TLS context of connections to the endpoint. Raises `NotKnown` if files are unusable."""
        if not self.endpoint.startswith("https:"):
            return False
        try:
            return tls_context(self.authority, self.certificate, self.key)
        except OSError:
            raise NotKnown("the files of TLS cannot be used") from None


def check_options(agent: CheckedAgent) -> Iterator[DoctorVerdict]:
    """Check that options are valid, and that the driver and its file of providers can be loaded."""
    options = agent.source.read(AgentOptions)
    driver = agent.driver or options.driver
    load_driver(driver)(agent.source)
    if options.provider_config_location:
        read_provider_config(Path(options.provider_config_location))
    yield DoctorVerdict("ok", f"the options are valid, and the driver is {driver}")
    if agent.driver is None or agent.driver in BUILT_IN:
        # Only the chosen driver knows its options.
        for line in options_without_effect(agent.source, schedules=True):
            yield DoctorVerdict("warn", line, "remove the option")


def check_tokens(agent: CheckedAgent) -> Iterator[DoctorVerdict]:
    """Check that the file has the token of each host, and that other users may not read it."""
    number = len(agent.tokens)
    yield DoctorVerdict(
        "ok", f"{agent.token_file} has the tokens of {number} host{'s' if number > 1 else ''}"
    )
    yield from judge_files(each for each in (agent.token_file, agent.key) if each is not None)


def check_state(agent: CheckedAgent) -> Iterator[DoctorVerdict]:
    """Check that the state directories can be used, and that no agent waits for an operator."""
    running, usable = 0, 0
    for host, directory in agent.hosts.items():
        if not directory.exists():
            usable += 1  # the agent creates it
            continue
        yield from _refused(host, directory)
        try:
            state = StateDirectory(directory)
        except StateUnusable as error:
            if "another agent" not in str(error):
                yield DoctorVerdict("fail", str(error), "correct --state-dir, or its owner")
                continue
            running += 1
            continue
        try:
            held = kept_session(directory).held
        finally:
            state.close()
        usable += 1
        if held is not None:
            says = f"host {host} carries out no orders: {held}"
            yield DoctorVerdict("fail", says, f"look at its guests, then run 'roost host accept {host}'")
    if running:
        yield DoctorVerdict("ok", f"agents of {running} of the hosts run now")
    if usable:
        yield DoctorVerdict("ok", f"{usable} state directories can be used")


def _refused(host: str, directory: Path) -> Iterator[DoctorVerdict]:
    """Check for nodes whose last reports the cell refused."""
    try:
        refused = kept_session(directory).refused
    except StateUnusable:
        return  # `check_state` reports it
    for node, reason in sorted(refused.items()):
        says = f"the cell does not take the report of node {node} of host {host}: {reason}"
        yield DoctorVerdict("fail", says, "give the node another name, or remove the one that has it")


def check_endpoint(agent: CheckedAgent) -> Iterator[DoctorVerdict]:
    """Check that the endpoint answers with a trusted certificate, and that its cell's database answers."""
    url = agent.endpoint.rstrip("/")
    parts = urlsplit(url)
    if (exposure := exposure_of(url)) is not None:
        yield DoctorVerdict("warn", exposure, CHANGE)
    try:
        tls = True if parts.scheme == "http" else tls_context(agent.authority, agent.certificate, agent.key)
    except OSError as error:
        yield DoctorVerdict(
            "fail", f"the files of TLS cannot be used: {error}", "correct --ca-file, --cert, --key"
        )
        return
    try:
        answer = httpx.get(f"{url}/readyz", verify=tls, timeout=ANSWER_SECONDS)
    except (httpx.HTTPError, OSError) as error:
        wrong = "certificate" in str(error).lower()
        change = "name its authority with --ca-file" if wrong else "start the cell's conductor"
        says = f"the endpoint {url}: {fault_of(error)}"
        yield DoctorVerdict("fail", says, f"{change}, or correct --endpoint")
        return
    if answer.status_code == httpx.codes.OK:
        yield DoctorVerdict("ok", f"the endpoint {url} is ready")
    else:
        says = f"the endpoint {url} answers /readyz with status {answer.status_code}"
        yield DoctorVerdict("fail", says, "run 'roost doctor --cell-conductor NAME' where it serves")


def check_access(agent: CheckedAgent) -> Iterator[DoctorVerdict]:
    """Check that the endpoint accepts the tokens of hosts whose agents do not run.

    The tokens of a running agent are not tried: the first use of a new token revokes the older ones.
    """
    tokens = agent.tokens
    verify = agent.verify
    accepted = running = 0
    for host in [*agent.hosts][:TRIED]:
        kept: tuple[str, ...] = ()
        if agent.hosts[host].exists():
            try:
                state = StateDirectory(agent.hosts[host])
            except StateUnusable:
                running += 1
                continue
            kept = state.tokens
            state.close()
        try:
            asyncio.run(_try(agent.endpoint, host, (*kept, tokens[host]), verify))
        except AccessRefused as error:
            change = f"name the endpoint of its cell, or run 'roost host renew-token {host}'"
            yield DoctorVerdict("fail", f"host {host}: {error}", change)
        except EndpointUnavailable as error:
            yield DoctorVerdict("skip", f"not checked: {error}")
            return
        except AgentProtocolError as error:
            yield DoctorVerdict("fail", f"host {host}: {error}", "is it the endpoint of a cell?")
            return
        else:
            accepted += 1
    if accepted:
        yield DoctorVerdict("ok", f"the endpoint takes the tokens of {accepted} hosts that were tried")
    elif running:
        yield DoctorVerdict("skip", "not checked: the agents run, 'roost host list' says how they are")


async def _try(url: str, host: str, tokens: tuple[str, ...], verify: ssl.SSLContext | bool) -> None:
    """Send a request in an unknown session, which changes nothing. Raises `AgentProtocolError`."""
    endpoint = HttpEndpoint(url, lambda: tokens, verify)
    try:
        await endpoint.ask(ReadTree(SessionKey(host, "", 0), provider_uuid(host)))
    except SessionLost:
        pass  # the endpoint accepted the token of the host
    finally:
        await endpoint.close()


CHECKS = (
    DoctorCheck("agent", check_options),
    DoctorCheck("tokens", check_tokens),
    DoctorCheck("state", check_state),
    DoctorCheck("endpoint", check_endpoint),
    DoctorCheck("access", check_access),
)
