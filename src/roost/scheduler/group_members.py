"""The members of the request's server group, by host."""

from collections import Counter

from roost.scheduler.nodes import NodeTable
from roost.scheduler.question import Question


def group_members(question: Question, table: NodeTable) -> Counter[int]:
    """Index of a host in the table -> members there; hosts without any are left out."""
    group = question.spec.group
    members: Counter[int] = Counter()
    for host in group.hosts if group is not None else ():
        for index in table.indexes_of_host(host):
            members[index] += 1
    return members
