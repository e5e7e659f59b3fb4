"""Checks of the running service: its readiness and its metrics."""

from collections.abc import Iterator

import httpx
import msgspec

from roost.cli.doctor.check import ANSWER_SECONDS, Deployment, DoctorCheck, DoctorVerdict
from roost.cli.doctor.machine import is_served
from roost.model.text import fault_of
from roost.server.workers.listeners import UnixAddress


class ReadinessCheck(msgspec.Struct):
    """One check in the response of ``/readyz``."""

    name: str
    passed: bool
    reason: str | None = None


class ReadinessAnswer(msgspec.Struct):
    """The response of ``/readyz``."""

    ready: bool
    checks: list[ReadinessCheck] = []


def check_ready(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that the service at the port is Roost and ready."""
    listening = deployment.listening
    if not is_served(listening.address):
        yield DoctorVerdict("skip", f"not checked: nothing listens on {listening.address}")
        return
    if listening.tls is not None and listening.tls.client_authority is not None:
        yield DoctorVerdict("skip", "not checked: the service asks clients for a certificate")
        return
    unix = isinstance(listening.address, UnixAddress)
    scheme = "http" if listening.tls is None else "https"
    url = f"{scheme}://{'localhost' if unix else listening.address}/readyz"
    # The certificate of the service may name another host than the address has.
    way = httpx.HTTPTransport(verify=False, uds=str(listening.address) if unix else None)
    try:
        with httpx.Client(transport=way, timeout=ANSWER_SECONDS) as client:
            answer = client.get(url)
        found = msgspec.json.decode(answer.content, type=ReadinessAnswer)
    except httpx.HTTPError as error:
        says = f"{url} does not answer: {fault_of(error)}"
        yield DoctorVerdict("fail", says, "look into the log of the service")
        return
    except msgspec.MsgspecError:
        says = f"{url} answers with status {answer.status_code} and no report: another program listens there"
        yield DoctorVerdict("fail", says, "stop that program, or choose another address")
        return
    failed = [each for each in found.checks if not each.passed]
    for each in failed:
        yield DoctorVerdict("fail", f"the service is not ready: {each.name}: {each.reason}", "see the log")
    if not failed:
        yield DoctorVerdict(
            "ok" if found.ready else "fail", f"{url} says {'ready' if found.ready else 'not ready'}"
        )


def check_metrics(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that the service shows its metrics."""
    if deployment.metrics is None:
        change = "start the service with --metrics-port, and give its URL here as --metrics"
        yield DoctorVerdict("warn", "no metrics address is known, so nobody is warned of an outage", change)
        return
    url = deployment.metrics if deployment.metrics.endswith("/metrics") else f"{deployment.metrics}/metrics"
    try:
        answer = httpx.get(url, timeout=ANSWER_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        says = f"{url} does not answer: {fault_of(error)}"
        yield DoctorVerdict("fail", says, "start the service with --metrics-port")
        return
    if answer.status_code != httpx.codes.OK or "roost_" not in answer.text:
        says = f"{url} answers with status {answer.status_code} and no metrics of Roost"
        yield DoctorVerdict("fail", says, "correct --metrics")
        return
    yield DoctorVerdict("ok", f"{url} has metrics")


CHECKS = (
    DoctorCheck("service", check_ready),
    DoctorCheck("metrics", check_metrics),
)
