"""Reasons as text: the moves that make room, in their order, or that there are none."""

import io

from rich.console import Console

from roost.cli.reasons_text import reasons_text
from roost.model.reasons import MoveSearch, ProposedMove, Reasons


def text(search: MoveSearch | None) -> str:
    output = io.StringIO()
    console = Console(file=output, width=200)
    for part in reasons_text(Reasons(sentence="no room", public="no room", move_search=search)):
        console.print(part)
    return output.getvalue()


def move(number: int) -> ProposedMove:
    return ProposedMove(
        instance=f"i{number}",
        source=f"h{number}",
        target=f"h{number + 1}",
        cell="cell1",
        project_id="p",
        flavor="[small]",
    )


def test_moves_are_listed_in_their_order() -> None:
    assert text(MoveSearch(most=3, moves=(move(2), move(1)), host="h1")).splitlines()[1:] == [
        "it fits after moving these, in order:",
        "  1. i2 ([small] of project p) from h2 to h3",
        "  2. i1 ([small] of project p) from h1 to h2",
        "  then on h1",
    ]
    assert "it fits after moving 1 instance:\n" in text(MoveSearch(most=3, moves=(move(1),), host="h1"))


def test_search_without_a_result_says_how_far_it_looked() -> None:
    found = MoveSearch(most=2, hosts=3, instances=5, fixed=1)
    line = "no move of up to 2 of 5 instances on 3 hosts; 1 there may not move makes it fit"
    assert text(found).splitlines()[1] == line
    cut = MoveSearch(most=2, hosts=3, instances=5, fixed=1, complete=False)
    assert text(cut).splitlines()[1] == f"{line}, and not all ways were tried"
    assert text(None).splitlines() == ["no room"]
