"""The use of an alternate: checks the next one again, and swaps the instance's claim to it.

The alternates of an instance are as old as its first claim. Meanwhile a host may be down or disabled, have
lost its room, or have got another member of the server group. So each alternate is judged again before the
claim, by the same filters, on the present state.

The swap is one write at the generation of the failed claim, which frees the failed host as it claims the
other. The consumer is never empty in between: an emptied consumer would begin at generation 1 again, and a
late write of an earlier attempt could pass for a new one.

Two calls for one attempt, or a call after a lost answer, have the same result: the first swap stands, and the
next call finds the consumer on that alternate.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import msgspec

from roost.ledger import Held
from roost.model.allocation import Candidate
from roost.model.assignment import Assignment
from roost.model.reshape import moved_mappings
from roost.model.spec import RequestSpec, Selection
from roost.scheduler.errors import CannotWeigh, StaleClaim
from roost.scheduler.pool.fresh_pool import FreshPool
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.bounds import Bounds
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import ClaimAttempt, selection_of

NO_CANDIDATE = "placement has no candidates there"


class AlternateRequest(msgspec.Struct, frozen=True):
    """A request of a caller: the next alternate of an instance, in place of the host that failed it.

    - ``spec``: the request spec that the instance was placed by.
    - ``instance``: the consumer whose claim is swapped.
    - ``failed``: the selection that holds its claim. ``reason``: why it failed there.
    - ``alternates``: those that are left, tried in order.
    - ``run``: the id of the run that chose them. ``request_id``: of the user's request.
    - ``held_by``: the consumer that holds the present host for an instance that moves, such as its migration;
      empty for none. In a server group it counts as the instance itself.
    - ``of_instance``: the instance, for the records, if the consumer has another uuid; empty: it has not.
    """

    spec: RequestSpec
    instance: str
    failed: Selection
    alternates: tuple[Selection, ...] = ()
    reason: str = ""
    run: str = ""
    request_id: str = ""
    held_by: str = ""
    of_instance: str = ""


class ReplacementRequest(AlternateRequest, frozen=True, kw_only=True):
    """A request of a caller for an alternate, with all that the scheduler derives from it.

    ``scheduling`` is for the instance alone.
    """

    scheduling: SchedulingRequest

    @classmethod
    def of(cls, request: AlternateRequest, scheduling: SchedulingRequest) -> "ReplacementRequest":
        """Return the replacement request of a caller's request."""
        return cls(
            request.spec,
            request.instance,
            request.failed,
            request.alternates,
            request.reason,
            request.run,
            request.request_id,
            request.held_by,
            request.of_instance,
            scheduling=scheduling,
        )


class Replacement(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a `ReplacementRequest`.

    ``selected`` is claimed; None: no alternate is left, and the claim is as it was, or on an alternate that
    the second look at a server group ruled out. ``alternates`` are left for another failure. ``tries``: the
    claim attempts in order, each passed-over alternate with its reason.
    """

    selected: Selection | None
    alternates: tuple[Selection, ...] = ()
    tries: tuple[ClaimAttempt, ...] = ()


class Replacing:
    """Tries the alternates of a request one after another, until one is claimed."""

    def __init__(self, request: ReplacementRequest, pools: HostPools) -> None:
        self.request = request
        self._table = pools.table
        self._tries: list[ClaimAttempt] = []
        self._bounds = Bounds(request.scheduling)
        self._refused = 0

    def moved_before(
        self, held: Held, assignment: Assignment | None, is_of: Callable[[str, str], bool]
    ) -> Replacement | None:
        """Return the result if an earlier call has swapped the claim already; None if the claim is the failed
        one.

        ``held`` and ``assignment``: the present allocations and assignment of the instance. ``is_of`` returns
        whether a provider is in the tree of a root. The alternate is not checked again: the instance may be
        on its way there.

        Raises: `StaleClaim` if the claim has been moved to a host that is no alternate.
        """
        request, generation = self.request, held.consumer.generation
        if self.is_failed(held):
            return None
        others = [provider for provider in held.allocations if provider not in request.failed.allocations]
        for number, alternate in enumerate(request.alternates):
            if any(is_of(provider, alternate.node) for provider in others):
                # The host may have been reshaped since the alternate was found.
                mappings = moved_mappings(alternate.mappings, alternate.allocations, held.allocations)
                there = msgspec.structs.replace(
                    alternate,
                    allocations=held.allocations,
                    mappings=mappings,
                    assignment=assignment,
                    generation=generation,
                )
                return self.claimed(number, there)
        if request.failed.generation is not None:
            raise StaleClaim(request.instance, request.failed.generation, generation)
        return None

    def is_failed(self, held: Held) -> bool:
        """Return whether the instance still holds its claim on the failed host."""
        failed = self.request.failed
        if failed.generation is None:
            return held.allocations == failed.allocations
        return held.consumer.generation == failed.generation

    @property
    def bound(self) -> str | None:
        """The bound of the run that is met, as text; None if none is."""
        bound = self._bounds.met(self._refused)
        return None if bound is None else f"{bound} is met"

    def alive(self, alternate: Selection) -> int | str:
        """Return the index of an alternate's node, or why its host cannot be used by any request."""
        index = self._table.index_of_node(alternate.node)
        if index is None:
            return "the node is no longer known"
        scheduling = self.request.scheduling
        if self.bound is not None:
            return self.bound
        if self._table.hosts[index] != alternate.host:
            return f"the node belongs to host {self._table.hosts[index]} now"
        if not self._table.enabled[index]:
            return "the host is disabled"
        if not self._table.seen_since(scheduling.oldest_heartbeat)[index]:
            return f"the host has not been seen for {scheduling.options.service_down_time:g} seconds"
        return index

    def candidates(self, alternate: Selection, pool: FreshPool) -> list[Candidate] | str:
        """Return the candidates of an alternate, its own allocation request first; or why there are none.

        ``pool`` has its host alone, and counts the instance's own allocations as free.
        """
        if not pool.offered:
            return NO_CANDIDATE
        try:
            steps = pool.ready()
        except CannotWeigh as error:
            return str(error)
        rejecting = next((step.name for step in steps if not step.left), None)
        if rejecting is not None:
            return f"{rejecting} rules it out"
        limit = self.request.scheduling.options.max_candidates_per_host or None
        found = list(islice(pool.candidates(0), limit))
        found.sort(key=lambda candidate: candidate.allocations != alternate.allocations)
        return found or NO_CANDIDATE

    def selection(
        self, alternate: Selection, index: int, candidate: Candidate, generation: int | None
    ) -> Selection:
        """Return an alternate with the claimed candidate of its host, and the consumer's generation after the
        claim."""
        default_zone = self.request.scheduling.options.default_availability_zone
        chosen = selection_of(self._table, index, candidate, alternate.weight, default_zone)
        limits = {**alternate.limits, **chosen.limits}
        return msgspec.structs.replace(chosen, limits=limits, generation=generation)

    def to_claim(self, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
        """Yield the candidates of an alternate, one after each refusal, within the bounds of a run."""
        for candidate in candidates:
            if self.bound is not None:
                return
            self._refused += 1
            yield candidate

    def passed_over(self, alternate: Selection, reason: str) -> None:
        """Note that an alternate cannot be used."""
        self._tries.append(
            ClaimAttempt(
                self.request.instance,
                alternate.host,
                alternate.node,
                alternate.cell,
                alternate.weight,
                reason,
            )
        )

    def claimed(self, number: int, selection: Selection) -> Replacement:
        """Return the result: the alternate at this position is claimed.

        A repeated call gives the attempt the number that the first call gave it, though it does not judge the
        alternates before it again.
        """
        selection = msgspec.structs.replace(selection, ordinal=self.request.failed.ordinal + number + 1)
        tried = ClaimAttempt(
            self.request.instance, selection.host, selection.node, selection.cell, selection.weight, None
        )
        return Replacement(
            selected=selection,
            alternates=self.request.alternates[number + 1 :],
            tries=(*self._tries, tried),
        )

    def nothing_left(self) -> Replacement:
        """Return the result: no alternate can be used."""
        return Replacement(selected=None, tries=tuple(self._tries))
