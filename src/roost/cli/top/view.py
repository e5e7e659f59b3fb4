"""The view: the capacity and figures of a service at one moment, read from its API and metrics address."""

import time
from collections.abc import Callable, Mapping

import httpx
import msgspec

from roost.cli.top.figures import Sample, TopFigures, figures, parse_sample
from roost.model.text import fault_of

MOST_ANSWER_SECONDS = 5.0
"""Seconds after which an address that does not answer counts as unreachable."""


class ResourceUse(msgspec.Struct, frozen=True):
    """Capacity and use of a resource class, in units of the class."""

    providers: int
    capacity: int
    used: int


class FullHost(msgspec.Struct, frozen=True):
    """A provider, and the resource class of which the largest share is in use."""

    name: str
    resource_class: str
    capacity: int
    used: int


class CapacityView(msgspec.Struct, frozen=True):
    """The response of ``GET /v1/capacity``."""

    version: int
    providers: int
    trees: int
    resources: dict[str, ResourceUse]
    fullest: list[FullHost]


class View(msgspec.Struct, frozen=True):
    """The capacity and figures of a service at one moment; each is None until it has been read once.

    ``problems``: a sentence for each address that did not answer; its values are those of its last response.
    """

    capacity: CapacityView | None
    figures: TopFigures | None
    problems: list[str]


class Watcher:
    """Reads the API and the metrics address of a service repeatedly.

    Args:
        client: sends the requests.
        api: root URL of the service.
        metrics: URL of its metrics address; None: it is not read.
        headers: those of requests to the API, with the token of a user with the role admin or service.
        fullest: number of the fullest providers to show.
        clock: seconds of a monotonic clock.
    """

    def __init__(
        self,
        client: httpx.Client,
        api: str,
        metrics: str | None,
        headers: Mapping[str, str],
        fullest: int = 10,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._api = api.rstrip("/")
        self._metrics = None if metrics is None else _metrics_url(metrics)
        self._headers = headers
        self._fullest = fullest
        self._clock = clock
        self._capacity: CapacityView | None = None
        self._sample: Sample | None = None
        self._figures: TopFigures | None = None

    def look(self) -> View:
        """Read both addresses, and compare the metrics with the previous sample."""
        problems = []
        try:
            self._capacity = self._read_capacity()
        except (httpx.HTTPError, httpx.InvalidURL, msgspec.MsgspecError) as error:
            problems.append(f"{self._api} cannot be read: {reason_of(error)}")
        if self._metrics is not None:
            try:
                self._compare(self._read_metrics(self._metrics))
            except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
                problems.append(f"{self._metrics} cannot be read: {reason_of(error)}")
        return View(self._capacity, self._figures, problems)

    def _read_capacity(self) -> CapacityView:
        answer = self._client.get(
            f"{self._api}/v1/capacity",
            params={"fullest": self._fullest},
            headers={**self._headers, "accept": "application/json"},
        )
        answer.raise_for_status()
        return msgspec.json.decode(answer.content, type=CapacityView)

    def _read_metrics(self, url: str) -> Sample:
        answer = self._client.get(url)
        answer.raise_for_status()
        return parse_sample(answer.text, self._clock())

    def _compare(self, sample: Sample) -> None:
        if self._sample is not None and sample.at > self._sample.at:
            self._figures = figures(self._sample, sample)
        self._sample = sample


def _metrics_url(address: str) -> str:
    """Return the URL of the metrics at an address; the default path is /metrics."""
    url = httpx.URL(address)
    return str(url.copy_with(path="/metrics") if url.path in ("", "/") else url)


def reason_of(error: Exception) -> str:
    """Return in a few words why a service could not be read."""
    if isinstance(error, httpx.HTTPStatusError):
        status = error.response.status_code
        if status == httpx.codes.NOT_FOUND:
            return "it has no such list; it is another service, or an older one"
        hint = " (see --token)" if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN) else ""
        return f"status {status}{hint}"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    return fault_of(error)
