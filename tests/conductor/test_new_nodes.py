"""What the judge of reported nodes reads of the cell's database."""

from collections.abc import Mapping

import pytest

from roost.agent.protocol.types import SessionKey
from roost.conductor.agent_endpoint.refusals import NewNodes, NewNodesJudge
from roost.model.node import NodeReport
from support.stepped_contexts import SteppedContext

SESSION = SessionKey("host1", "nonce", 1)
NOTHING = NewNodes(frozenset(), frozenset())


def report(node: str) -> NodeReport:
    return NodeReport(node=node, host="host1", cell="a")


def judged(
    judge: NewNodesJudge, session: SessionKey, nodes: list[str], stored: Mapping[str, str]
) -> list[str]:
    """Judge reports of nodes that placement does not know; returns what was read or asked for."""
    judging = judge.judge(session, [report(node) for node in nodes])
    done: list[str] = []
    try:
        step = judging.send(None)
        while True:
            done.append(step.name)
            step = judging.send(stored if step.name == "read" else None)
    except StopIteration as ended:
        assert ended.value == NOTHING
    return done


def test_the_database_is_read_until_the_nodes_are_known_to_be_the_sessions_own() -> None:
    judge = NewNodesJudge(SteppedContext(), "cell/a")
    assert judged(judge, SESSION, ["n1"], {}) == ["read", "providers.find"], "not stored yet"
    assert judged(judge, SESSION, ["n1"], {"n1": "host1"}) == ["read"]
    assert judged(judge, SESSION, ["n1"], {}) == []
    assert judged(judge, SESSION, ["n1", "n2"], {}) == ["read", "providers.find"]


@pytest.mark.parametrize(
    "later",
    [
        SessionKey("host1", "other", 2),
        # Of a host that was removed and added again: its epochs may begin anew.
        SessionKey("host1", "other", 1),
        SessionKey("host2", "nonce", 1),
    ],
    ids=["session", "session of the same epoch", "host"],
)
def test_what_another_session_has_is_read_anew(later: SessionKey) -> None:
    judge = NewNodesJudge(SteppedContext(), "cell/a")
    judged(judge, SESSION, ["n1"], {"n1": "host1"})
    assert judged(judge, later, ["n1"], {"n1": "host1"}) == ["read"]


def test_a_node_of_another_host_is_never_taken_for_the_sessions_own() -> None:
    judge = NewNodesJudge(SteppedContext(), "cell/a")
    assert judged(judge, SESSION, ["n1"], {"n1": "host2"}) == ["read"]
    assert judged(judge, SESSION, ["n1"], {"n1": "host2"}) == ["read"]
