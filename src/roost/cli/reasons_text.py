"""The reasons of a run as text: the funnel, near misses, relaxations, moves, and the parts of weights."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from roost.cli.bars import bar_of
from roost.model.reasons import HostNames, MoveSearch, Reasons, WeighedHost

FUNNEL_WIDTH = 10
"""Characters of the bar of all hosts in the funnel."""

MOST_SHOWN = 5
"""Most hosts in a row, near misses and relaxations in the text. JSON has all recorded ones."""


def reasons_text(reasons: Reasons) -> Iterator[RenderableType]:
    """Yield the parts of a refusal's reasons; missing ones are left out."""
    yield Text(reasons.sentence)
    if reasons.query:
        yield Text("asked of placement: " + "; ".join(reasons.query))
    if reasons.stages:
        yield _funnel(reasons)
    misses = [f"{miss.host} {miss.text}" for miss in reasons.misses]
    yield from _listed("nearest misses", misses)
    relaxed = [
        each.text + (f" (it would go to {each.host})" if each.host else "") for each in reasons.relaxations
    ]
    pairs = any(each.kind == "pair" for each in reasons.relaxations)
    changes = "two changes at once" if pairs else "one change"
    yield from _listed(f"it would be placed with {changes}", relaxed)
    if reasons.move_search is not None:
        yield _moves(reasons.move_search)
    if not reasons.complete:
        yield Text("The time was over before all changes were tried.")


def _moves(search: MoveSearch) -> Text:
    """Return the moves that make room in their order, or that there are none."""
    if search.moves:
        lines = [
            f"{number}. {each.instance} ({each.flavor} of project {each.project_id}) from {each.source} to "
            f"{each.target}"
            for number, each in enumerate(search.moves, 1)
        ]
        title = (
            "it fits after moving 1 instance" if len(lines) == 1 else "it fits after moving these, in order"
        )
        return Text("\n".join([f"{title}:", *(f"  {line}" for line in lines), f"  then on {search.host}"]))
    looked = f"{search.instances} instances on {search.hosts} hosts; {search.fixed} there may not move"
    ended = "" if search.complete else ", and not all ways were tried"
    return Text(f"no move of up to {search.most} of {looked} makes it fit{ended}")


def weights_table(weighed: Sequence[WeighedHost]) -> Table:
    """Return the table of weights, with a column for each host: raw and normalised number of each weigher."""
    table = Table(box=None, pad_edge=False)
    table.add_column("weigher × multiplier")
    for one in weighed:
        table.add_column(Text(one.host), justify="right", overflow="fold")
    table.add_row("weight", *(f"{one.weight:.3f}" for one in weighed))
    told = [
        {(each.weigher, each.multiplier): f"{each.raw:,.6g} → {each.normalised:.3f}" for each in one.numbers}
        for one in weighed
    ]
    # Multipliers of aggregates differ between hosts: each multiplier has a row.
    for weigher, multiplier in dict.fromkeys(key for one in told for key in one):
        shown = (one.get((weigher, multiplier), "") for one in told)
        table.add_row(Text(f"{weigher} × {multiplier:g}"), *shown)
    return table


def _funnel(reasons: Reasons) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("condition", overflow="fold")
    for column in ("hosts out", "left"):
        table.add_column(column, justify="right")
    table.add_column("", min_width=FUNNEL_WIDTH, no_wrap=True)
    for column in ("trees out", "left", "do not meet it"):
        table.add_column(column, justify="right")
    table.add_column("removed hosts", overflow="fold")
    hosts, trees = reasons.hosts, reasons.trees
    table.add_row("known", "", f"{hosts:,}", bar_of(hosts, hosts, FUNNEL_WIDTH), "", f"{trees:,}", "", "")
    for stage in reasons.stages:
        hosts -= stage.hosts
        trees -= stage.trees or 0
        of_trees = stage.trees is not None
        table.add_row(
            Text(f"{stage.kind} {stage.name}"),
            f"{stage.hosts:,}",
            f"{hosts:,}",
            bar_of(hosts, reasons.hosts, FUNNEL_WIDTH),
            f"{stage.trees:,}" if of_trees else "",
            f"{trees:,}" if of_trees else "",
            "" if stage.hosts_alone is None else f"{stage.hosts_alone:,}",
            Text(_names(stage.removed)),
        )
    return table


def _names(hosts: HostNames) -> str:
    shown = hosts.names[:MOST_SHOWN]
    rest = len(hosts.names) - len(shown) + hosts.left_out
    return ", ".join(shown) + (" and more" if rest else "")


def _listed(title: str, lines: Sequence[str]) -> Iterator[Text]:
    if lines:
        more = len(lines) - MOST_SHOWN
        shown = [*lines[:MOST_SHOWN], *([f"and {more} more"] if more > 0 else [])]
        yield Text(f"{title}:\n" + "\n".join(f"  {line}" for line in shown))
