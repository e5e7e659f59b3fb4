"""All hosts."""

from collections.abc import Hashable

from roost.fleet.columns import Bools
from roost.scheduler.candidates.offers import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.question import Progress, Question


class AllHostsFilter:
    """Lets every host pass. Source: Nova's filter of this name."""

    name = "AllHostsFilter"
    looks_at = Looks.NOTHING

    def key(self, question: Question) -> Hashable | None:
        return None

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        return None


PLUGIN = AllHostsFilter
