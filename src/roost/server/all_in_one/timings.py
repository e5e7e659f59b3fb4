"""Durations of decisions and claims, measured in the gateway."""

import time
from array import array

from roost.scheduler.gateways import Decided, Gateway, GatewayWrapper
from roost.scheduler.request.scheduling_request import SchedulingRequest

MOST = 10_000_000
"""Durations recorded at most: a server that runs for months makes more decisions."""


class TimedGateway(GatewayWrapper):
    """Wraps a gateway and records the durations of its first `MOST` requests.

    ``instances``: the number of instances that hosts were requested for. ``decisions``: milliseconds of each
    decision (filter, weigh, pick, prepare the claim), divided by its instances. ``claims``: milliseconds
    from the request until the claim is durable.
    """

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self.instances = 0
        self.decisions = array("f")
        self.claims = array("f")

    async def decide(self, request: SchedulingRequest) -> Decided:
        asked = time.perf_counter()
        decided = await super().decide(request)
        self.instances += len(request.instances)
        if len(self.decisions) < MOST:
            self.claims.append((time.perf_counter() - asked) * 1000)
            self.decisions.append(decided.seconds * 1000 / len(request.instances))
        return decided
