"""``/v1/nova/external``: an order of the hosts that Nova's scheduler has found.

Forks of Nova, such as SAP's, ask an external scheduler after their own filters and weighers.

Source: the documentation of cobaltcore-dev/cortex, ``ExternalSchedulerRequest`` of its Nova API.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from roost.model.vocabulary import MAX_NAME
from roost.scheduler.api.refusals import as_http
from roost.scheduler.api.service import SchedulerService
from roost.scheduler.api.wire.language import language_of
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.pool.judged_pool import PoolJudgement
from roost.web.errors import Unavailable
from roost.web.request import Request, Response

MOST_HOSTS = 100_000
"""Most hosts of one request. More are refused."""

_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]


class ExternalHost(msgspec.Struct):
    """A host that Nova's filters have left: its compute service, and the node there."""

    host: _Name
    hypervisor_hostname: str = ""


class ExternalRequest(msgspec.Struct):
    """A request for an order of hosts, as forks of Nova send it.

    `spec` is Nova's RequestSpec as oslo.versionedobjects serialises it. `hosts` are in the order of Nova's
    `weights`. `context` is not read. Other keys are ignored.
    """

    spec: dict[str, Any]
    hosts: Annotated[tuple[ExternalHost, ...], Meta(max_length=MOST_HOSTS)]
    context: dict[str, Any] = {}
    weights: dict[str, float] = {}


class OrderedHosts(msgspec.Struct, frozen=True):
    """The hosts of the request in the order in which Roost's scheduler would take them."""

    hosts: tuple[str, ...]


async def order_hosts(service: SchedulerService, req: Request, resp: Response) -> OrderedHosts:
    """Order the hosts that Nova's scheduler has found for an instance.

    The best host of Roost's weighers is first; of equal ones the first of the request. Hosts that Roost's
    filters or placement leave out are last, in the order of the request: no host is taken away from Nova.
    Nothing is claimed, and nothing is recorded.
    """
    wanted: ExternalRequest = req.body
    if service.judge is None:
        raise Unavailable("This scheduler orders no hosts.")
    with as_http(req.viewer):
        asked = language_of(wanted.spec, service.scheduler.table).read_spec(wanted.spec)
        await service.refresh()
        instance = asked.instances[0] if asked.instances else None
        judgement = await service.judge.judgement(asked.spec, instance)
    names = [each.host for each in wanted.hosts]
    if judgement is None:
        return OrderedHosts(tuple(names))
    table = service.scheduler.table
    weights = {name: _weight(table, judgement, name) for name in set(names)}
    # Sorting is stable: equal hosts stay in the order of Nova.
    return OrderedHosts(tuple(sorted(names, key=lambda name: -weights[name])))


def _weight(table: NodeTable, judgement: PoolJudgement, host: str) -> float:
    """Return the weight of the best node of a host; minus infinity if none was weighed."""
    verdicts = map(judgement.verdict, table.indexes_of_host(host))
    found = (each.weight for each in verdicts if each.weight is not None)
    return max(found, default=float("-inf"))
