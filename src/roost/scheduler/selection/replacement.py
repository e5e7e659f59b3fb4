"""The use of an alternate: checks the next one again, and swaps the claim of the instance to it.

The alternates of an instance are as old as its first claim. Meanwhile a host may be dead or disabled, have
lost its room, or have got another member of the server group. So each alternate is judged again before it is
claimed, by the same filters, on the present state.

The swap is one write at the generation of the failed claim, which frees the failed host as it claims the
other: the consumer is never empty in between. A consumer that has been emptied would begin at generation 1
again, and a late write of an earlier attempt could pass for a new one.

Two calls for one attempt, or one whose answer was lost, come to the same result: the first swap stands, and
the next call finds the consumer on that alternate.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import msgspec

from roost.ledger import Held
from roost.model.allocation import Candidate
from roost.model.assignment import Assignment
from roost.model.reshape import moved_mappings
from roost.model.spec import Selection
from roost.scheduler.candidates.candidate_source import CandidateSource
from roost.scheduler.errors import CannotWeigh, StaleClaim
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugins import Filter, Weigher
from roost.scheduler.pool.fresh_pool import FreshPool
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest
from roost.scheduler.selection.bounds import Bounds
from roost.scheduler.selection.outcome import ClaimAttempt, selection_of

NO_CANDIDATE = "placement has no candidates there"


class ReplacementRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Replace the host of one instance.

    ``question`` is for the instance alone. ``failed`` is what it was claimed on. ``alternates`` are tried in
    order.
    """

    scheduling: SchedulingRequest
    failed: Selection
    alternates: tuple[Selection, ...]

    @property
    def instance(self) -> str:
        """The consumer whose claim is swapped."""
        return self.scheduling.instances[0]


class Replacement(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it.

    ``selected`` is claimed; None: no alternate is left, and the claim is as it was, or on an alternate that
    the second look at a server group ruled out. ``alternates`` are left for another failure. ``tries``: the
    alternates that were tried, in order, with the reason of each that was passed over.
    """

    selected: Selection | None
    alternates: tuple[Selection, ...] = ()
    tries: tuple[ClaimAttempt, ...] = ()


class Replacing:
    """The alternates of a request, one after another, until one is claimed."""

    def __init__(self, request: ReplacementRequest, table: NodeTable) -> None:
        self.request = request
        self._table = table
        self._tries: list[ClaimAttempt] = []
        self._bounds = Bounds(request.scheduling)
        self._refused = 0

    def moved_before(
        self, held: Held, assignment: Assignment | None, is_of: Callable[[str, str], bool]
    ) -> Replacement | None:
        """The result if an earlier call has swapped the claim already; None if the claim is the failed one.

        ``held`` and ``assignment`` are what the instance has now. ``is_of`` says whether a provider is in the
        tree of a root. The alternate is not checked again: the instance may be under way there.

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
        """Whether what an instance holds is still its claim on the host that failed."""
        failed = self.request.failed
        if failed.generation is None:
            return held.allocations == failed.allocations
        return held.consumer.generation == failed.generation

    @property
    def bound(self) -> str | None:
        """Says that a bound of the run is met, None if none is."""
        bound = self._bounds.met(self._refused)
        return None if bound is None else f"{bound} is met"

    def alive(self, alternate: Selection) -> int | str:
        """The index of an alternate's node; or why its host cannot be used, whatever is asked for."""
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

    def candidates(
        self,
        alternate: Selection,
        offers: CandidateSource,
        filters: Sequence[Filter],
        weighers: Sequence[Weigher],
        progress: GroupPlacement,
    ) -> list[Candidate] | str:
        """The candidates of an alternate, its own allocation request first; or why there are none.

        ``offers`` are of its host alone, without what the instance itself holds. ``progress`` has
        the members of its server group.
        """
        if not len(offers.index):
            return NO_CANDIDATE
        scheduling = self.request.scheduling
        field = FreshPool(scheduling, self._table, offers, filters, weighers, progress)
        try:
            steps = field.ready()
        except CannotWeigh as error:
            return str(error)
        barring = next((step.name for step in steps if not step.left), None)
        if barring is not None:
            return f"{barring} rules it out"
        limit = scheduling.options.max_candidates_per_host or None
        found = list(islice(field.candidates(0), limit))
        found.sort(key=lambda candidate: candidate.allocations != alternate.allocations)
        return found or NO_CANDIDATE

    def selection(
        self, alternate: Selection, index: int, candidate: Candidate, generation: int | None
    ) -> Selection:
        """An alternate with the candidate of its host that is claimed, and the consumer's generation then."""
        default_zone = self.request.scheduling.options.default_availability_zone
        chosen = selection_of(self._table, index, candidate, alternate.weight, default_zone)
        limits = {**alternate.limits, **chosen.limits}
        return msgspec.structs.replace(chosen, limits=limits, generation=generation)

    def to_claim(self, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
        """The candidates of an alternate, the next one as each is refused, within the bounds of a run."""
        for candidate in candidates:
            if self.bound is not None:
                return
            self._refused += 1
            yield candidate

    def passed_over(self, alternate: Selection, reason: str) -> None:
        """Take note that an alternate cannot be used."""
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
        """The result: the alternate at this place is claimed.

        A repeated call numbers the attempt as the first one did, though it does not judge the alternates
        before it again.
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
        """The result: no alternate can be used."""
        return Replacement(selected=None, tries=tuple(self._tries))
