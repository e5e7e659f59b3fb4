"""Runs a workload through a running system over the conductor's API, as users do.

The hosts are those of the system; the workload's are not used. All instances are in the token's project.
"""

import asyncio
import heapq
import resource
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

import httpx
import msgspec

from roost.bench.errors import ReplayError
from roost.bench.replay.summary import Latency, Summary
from roost.bench.replay.workload import Bin, Workload, WorkloadRequest
from roost.conductor.instances.types import MOST_AT_ONCE, AcceptedInstances
from roost.model.instance import ACTIVE, ERROR
from roost.web.auth.credentials import Caller, Credentials
from roost.web.auth.identity import IdentityUnavailable
from roost.web.idempotency import HEADER, KeyInWork
from roost.web.query import LARGEST_PAGE

T = TypeVar("T")

INSTANCES = "/v1/instances"
AT_ONCE = 16
"""Requests that are sent at the same time."""
LOOK_SECONDS = 0.15
"""Seconds between two reads of instances that are not settled."""
ASKED_TOGETHER = 100
"""Requests whose instances are read together."""
OUTAGE_SECONDS = 120.0
"""Seconds of an outage of the conductor after which the replay fails."""
_SETTLED = (ACTIVE, ERROR)
_UNAVAILABLE = (429, 502, 503, 504)


class _Shown(msgspec.Struct):
    """The fields of an instance that a replay reads."""

    uuid: str
    request_id: str
    state: str
    attempt: int
    reason: str | None


class _Page(msgspec.Struct):
    instances: list[_Shown]
    next: str | None


class _OnItsWay(NamedTuple):
    """An accepted request. ``instances``: their number. ``asked``: monotonic seconds when it was sent."""

    request_id: str
    instances: int
    asked: float


_decode_page = msgspec.json.Decoder(_Page).decode
_decode_accepted = msgspec.json.Decoder(AcceptedInstances).decode


class RemoteReplay:
    """A run of a workload on a system over HTTP.

    Requests of a bin for equal instances become one request. A bin begins once the instances of the previous
    bin are settled. Deletions go on meanwhile; the run ends once all are done.
    """

    def __init__(self, workload: Workload, caller: Caller, speed: float | None = None) -> None:
        self._workload = workload
        self._caller = caller
        self._speed = speed
        self._departures: list[tuple[int, str]] = []
        self._limit = asyncio.Semaphore(AT_ONCE)
        self._settling: list[float] = []
        self._placed = self._on_alternate = self._failed = 0
        self._deleted: set[str] = set()
        self._refusals: dict[str, int] = {}

    async def run(self, on_bin: Callable[[int], None] = lambda _: None) -> Summary:
        """Run all bins; call ``on_bin`` with the number of finished bins after each.

        Raises:
            ReplayError: the system refuses a request, or is away for too long.
        """
        check(self._workload)
        started = time.perf_counter()
        for number, bin_ in enumerate(self._workload.bins):
            if self._speed is not None:
                due = started + (bin_.start - self._workload.bins[0].start) / self._speed
                await asyncio.sleep(max(due - time.perf_counter(), 0.0))
            leaving = []
            while self._departures and self._departures[0][0] <= bin_.start:
                leaving.append(heapq.heappop(self._departures)[1])
            await _all(self._delete(each) for each in leaving)
            await self._settle(await _all(self._place(requests) for requests in alike(bin_)))
            on_bin(number + 1)
        while self._deleted & await self._there():
            await asyncio.sleep(2 * LOOK_SECONDS)
        return self._summary(time.perf_counter() - started)

    async def _there(self) -> set[str]:
        """Return the uuids of all instances that the system shows."""
        return {each.uuid async for each in self._listed({})}

    async def _delete(self, instance: str) -> None:
        await self._send("DELETE", f"{INSTANCES}/{instance}", None, 202, 404)
        self._deleted.add(instance)

    async def _place(self, requests: Sequence[WorkloadRequest]) -> _OnItsWay:
        """Send one request for the instances of requests that are alike."""
        asked = time.perf_counter()
        answer = await self._send("POST", INSTANCES, body_of(requests), 202)
        accepted = _decode_accepted(answer.content)
        departures = [each for request in requests for each in request.departures]
        for at, instance in zip(departures, accepted.instances, strict=True):
            if at is not None:
                heapq.heappush(self._departures, (at, instance))
        return _OnItsWay(accepted.request_id, len(accepted.instances), asked)

    async def _settle(self, waiting: Sequence[_OnItsWay]) -> None:
        """Wait until the instances of requests are settled."""
        while waiting:
            left: list[_OnItsWay] = []
            for first in range(0, len(waiting), ASKED_TOGETHER):
                some = waiting[first : first + ASKED_TOGETHER]
                there: dict[str, list[_Shown]] = {each.request_id: [] for each in some}
                async for instance in self._listed({"request_id": ",".join(there)}):
                    there[instance.request_id].append(instance)
                for each in some:
                    found = there[each.request_id]
                    if len(found) < each.instances or any(one.state not in _SETTLED for one in found):
                        left.append(each)
                        continue
                    self._count(found)
                    self._settling += [(time.perf_counter() - each.asked) * 1000] * each.instances
            waiting = left
            if waiting:
                await asyncio.sleep(LOOK_SECONDS)

    def _count(self, settled: Iterable[_Shown]) -> None:
        for each in settled:
            if each.state == ACTIVE:
                self._placed += 1
                self._on_alternate += each.attempt > 1
            elif each.attempt:
                self._failed += 1
            else:
                cause = (each.reason or "").removeprefix("No valid host was found: ").partition(";")[0]
                self._refusals[cause] = self._refusals.get(cause, 0) + 1

    async def _listed(self, query: Mapping[str, str]) -> AsyncIterator[_Shown]:
        """Yield the instances that the system lists for a query."""
        asked = {"limit": str(LARGEST_PAGE), **query}
        while True:
            answer = await self._send("GET", f"{INSTANCES}?{urlencode(asked)}", None, 200)
            page = _decode_page(answer.content)
            for each in page.instances:
                yield each
            if page.next is None:
                return
            asked["marker"] = page.next

    async def _send(self, method: str, target: str, body: object, *good: int) -> httpx.Response:
        """Send a request, repeatedly during an outage, and return the response. Raises `ReplayError`."""
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if body is None else {"content-type": "application/json"}
        if method == "POST":
            # A request may be accepted although its response is lost. The key prevents a second acceptance.
            headers[HEADER] = str(uuid.uuid4())
        began = time.monotonic()
        pause = 0.2
        while True:
            try:
                async with self._limit:
                    answer = await self._caller.send(method, target, headers, content)
            except (httpx.TransportError, IdentityUnavailable) as error:
                said = repr(error)
            else:
                if answer.status_code in good:
                    return answer
                said = f"{answer.status_code} {answer.text[:500]}"
                is_in_work = answer.status_code == KeyInWork.status and KeyInWork.code in answer.text
                if answer.status_code not in _UNAVAILABLE and not is_in_work:
                    raise ReplayError(f"{method} {target} was answered {said}")
            if time.monotonic() - began > OUTAGE_SECONDS:
                raise ReplayError(f"{method} {target} has no answer for {OUTAGE_SECONDS:g} s: {said}")
            await asyncio.sleep(pause)
            pause = min(2 * pause, 5.0)

    def _summary(self, seconds: float) -> Summary:
        return Summary(
            workload=self._workload.name,
            hosts=len(self._workload.hosts),
            cells=0,
            requests=self._workload.requests,
            asked=self._workload.instances,
            placed=self._placed,
            placed_on_alternate=self._on_alternate,
            failed=self._failed,
            refusals=self._refusals,
            departures=len(self._deleted),
            decisions=self._workload.instances,
            wall_seconds=seconds,
            peak_rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            peak_use={},
            settling=Latency.of(self._settling),
        )


def check(workload: Workload) -> None:
    """Check that the API can express all requests. Raises `ReplayError`."""
    if any(request.requested_resources for bin_ in workload.bins for request in bin_.requests):
        raise ReplayError(f"{workload.name} asks for request groups, which are asked for by ports over HTTP")


def alike(bin_: Bin) -> list[list[WorkloadRequest]]:
    """Return the requests of a bin, grouped by equal instances, in order of the first of each group."""
    groups: dict[object, list[WorkloadRequest]] = {}
    counts: dict[object, int] = {}
    for number, request in enumerate(bin_.requests):
        key: object = (request.flavor.name, request.availability_zone, request.required_traits)
        if request.group_policy is not None:
            key = number
        elif counts.get(key, 0) + request.count > MOST_AT_ONCE:
            groups[number] = groups.pop(key)
            counts[key] = 0
        groups.setdefault(key, []).append(request)
        counts[key] = counts.get(key, 0) + request.count
    return list(groups.values())


def body_of(requests: Sequence[WorkloadRequest]) -> dict[str, object]:
    """Return the body of one request for the instances of all these requests, which are alike."""
    first = requests[0]
    flavor = first.flavor
    body: dict[str, object] = {
        "flavor": {
            "name": flavor.name,
            "vcpus": flavor.vcpus,
            "memory_mb": flavor.memory_mb,
            "disk_gb": flavor.disk_gb,
            "extra_specs": flavor.extra_specs,
        },
        "count": sum(request.count for request in requests),
        "min_count": 1,
        "required_traits": sorted(first.required_traits),
    }
    if first.availability_zone is not None:
        body["availability_zone"] = first.availability_zone
    if first.group_policy is not None:
        # A new group for each request.
        body["group"] = {"uuid": str(uuid.uuid4()), "policy": first.group_policy}
    return body


@asynccontextmanager
async def calling(credentials: Credentials, **way: Any) -> AsyncIterator[Caller]:
    """Open a caller of the conductor with these credentials.

    ``way``: options of the httpx client, as trusted authorities or a transport.
    """
    limits = httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE)
    caller = Caller(credentials, httpx.AsyncClient(limits=limits, timeout=60.0, **way))
    try:
        yield caller
    finally:
        await caller.close()


async def _all(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all coroutines at the same time. Raises the first error, once the others have been stopped."""
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(work) for work in works]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in running]
