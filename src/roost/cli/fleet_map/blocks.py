"""The map of a fleet as lines of blocks: a character a host, a hundred hosts a line.

A block has a colour, or where there are none a height. Hosts that are down or disabled have a mark in place
of the block.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from roost.cli.bars import percent
from roost.cli.fleet_map.answer import DISABLED, DOWN, LEVELS, UP, DrawnAmounts, DrawnGroup, DrawnMap
from roost.cli.tables import one_line, shortened

A_LINE: Final = 100
"""Hosts a line."""

NARROW: Final = 50
"""Hosts a line on a screen of fewer than `A_LINE` columns."""

LEAST_NAME: Final = 6
"""Least columns beside the blocks for the name of the first host of a line; with fewer there are no names."""

_STEPS: Final = 8
_HEIGHTS: Final = "▁▂▃▄▅▆▇█"
_DIGITS: Final = "01234567"
_COLOURS: Final = (
    "#232e48",
    "#284a71",
    "#226393",
    "#0684a4",
    "#02a4ad",
    "#61cc9e",
    "#b6e288",
    "#f5ed81",
)
"""Colours of the steps, those of the dashboard's map: dark blue is nothing, yellow all.

Each is lighter than the one before, so that they differ for the colour-blind too.
"""

_MARKS: Final = {DOWN: "bold #ffffff on #c0281a", DISABLED: "bold #000000 on #e0a83c"}
"""The styles of the marks of hosts that are not up: red and amber, which no step has."""

_GREEN: Final = "#3f8f5f"


class Pencil(NamedTuple):
    """The means of a screen. ``columns``: None for output that is no screen."""

    columns: int | None
    colours: bool
    blocks: bool

    @classmethod
    def of(cls, console: Console, columns: int | None) -> "Pencil":
        """Return the means of a console. Sixteen colours are too few for the steps."""
        colours = not console.no_color and console.color_system in ("256", "truecolor")
        return cls(columns, colours, not console.options.ascii_only)

    @property
    def a_line(self) -> int:
        """The hosts on a line."""
        if self.columns is None or self.columns >= A_LINE:
            return A_LINE
        return NARROW if self.columns >= NARROW else max(10, self.columns // 10 * 10)


def map_lines(found: DrawnMap, pencil: Pencil) -> Iterator[Text]:
    """Yield the lines of the map: the cloud in numbers, the legend, and each group with its blocks."""
    yield from _folded([_cloud(found), *_amounts(_sum(found.groups), found)], pencil)
    yield from _legend(found, pencil)
    if pencil.a_line < A_LINE and found.hosts > pencil.a_line:
        yield Text(f"{pencil.a_line} hosts a line, as the screen has {pencil.columns} columns", "dim")
    room = _room(found, pencil)
    for group in found.groups:
        yield Text()
        yield from _folded([_head(group, found), *_amounts(group.amounts, found)], pencil)
        yield from _blocks(group, found, pencil, room)


def steps(group: DrawnGroup, found: DrawnMap) -> Iterator[tuple[int | None, str]]:
    """Yield the step, 0 to 7, and the state of each host; the step is None without the class or by state."""
    levels = group.levels
    for place, state in enumerate(group.states):
        if found.by == "state" or levels is None or (level := LEVELS.find(levels[place])) < 0:
            yield None, state
        else:
            # 0 and 31 are nothing and all; five levels are a step between them.
            yield (7 if level == len(LEVELS) - 1 else (level + 4) // 5), state


def _blocks(group: DrawnGroup, found: DrawnMap, pencil: Pencil, room: int) -> Iterator[Text]:
    drawn = [_character(step, state, found, pencil) for step, state in steps(group, found)]
    for number, first in enumerate(range(0, len(drawn), pencil.a_line)):
        line = Text(no_wrap=True)
        if room:
            name = one_line(group.names[number]) if number < len(group.names) else ""
            name = shortened(name, room)
            line.append(name + " " * (room - cell_len(name) + 1), "dim")
        for character, style in _runs(drawn[first : first + pencil.a_line]):
            line.append(character, style)
        yield line


def _character(step: int | None, state: str, found: DrawnMap, pencil: Pencil) -> tuple[str, str]:
    """Return the character of a host and its style."""
    if state in _MARKS:
        return state, _MARKS[state] if pencil.colours else ""
    if found.by == "state":
        if not pencil.colours:
            return UP, ""
        return "█" if pencil.blocks else UP, _GREEN
    if step is None:
        return "·" if pencil.blocks else "-", "dim" if pencil.colours else ""
    if pencil.colours:
        return ("█", _COLOURS[step]) if pencil.blocks else (_DIGITS[step], f"on {_COLOURS[step]}")
    return (_HEIGHTS if pencil.blocks else _DIGITS)[step], ""


def _runs(drawn: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the characters of neighbours with one style together."""
    text, style = "", ""
    for character, own in drawn:
        if own != style and text:
            yield text, style
            text = ""
        text, style = text + character, own
    if text:
        yield text, style


def _room(found: DrawnMap, pencil: Pencil) -> int:
    """Return the columns of the names of hosts before the lines; 0: there are none."""
    longest = max((cell_len(one_line(name)) for group in found.groups for name in group.names), default=0)
    if pencil.columns is None:
        return longest
    room = min(longest, pencil.columns - pencil.a_line - 1)
    return room if room >= min(LEAST_NAME, longest) else 0


def _cloud(found: DrawnMap) -> str:
    counts = Counter[str]()
    for each in found.groups:
        counts.update(up=each.up, disabled=each.disabled, down=each.down)
    return f"{found.hosts:,} hosts: {_states(counts['up'], counts['disabled'], counts['down'])}"


def _head(group: DrawnGroup, found: DrawnMap) -> str:
    names = [f"zone {one_line(group.zone)}", f"cell {one_line(group.cell)}" if group.cell else "no cell"]
    if found.label is not None:
        key, value = one_line(found.label), one_line(group.label)
        names.insert(1, f"{key} {value}" if value else f"no {key}")
    return f"{', '.join(names)}: {_states(group.up, group.disabled, group.down)}"


def _states(up: int, disabled: int, down: int) -> str:
    parts = [f"{up:,} up"]
    parts += [f"{number:,} {name}" for number, name in ((disabled, "disabled"), (down, "down")) if number]
    return ", ".join(parts)


def _amounts(amounts: DrawnAmounts | None, found: DrawnMap) -> list[str]:
    """Return the use of a group: of what may be allocated, of what there is."""
    if amounts is None or found.by == "state" or not (amounts.capacity or amounts.used):
        return []
    share = percent(amounts.used, amounts.capacity)
    of = f"{found.resource_class}: {amounts.used:,} used of {amounts.capacity:,} ({share})"
    reserved = f", {amounts.reserved:,} reserved" if amounts.reserved else ""
    return [of, f"{amounts.total:,} in total{reserved}"]


def _sum(groups: Sequence[DrawnGroup]) -> DrawnAmounts | None:
    every = [each.amounts for each in groups if each.amounts is not None]
    if not every:
        return None
    return DrawnAmounts(
        sum(each.capacity for each in every),
        sum(each.used for each in every),
        sum(each.reserved for each in every),
        sum(each.total for each in every),
    )


def _legend(found: DrawnMap, pencil: Pencil) -> Iterator[Text]:
    """Yield the lines of the legend: each character with the number of hosts that have it."""
    drawn = Counter[int | str | None]()
    for group in found.groups:
        drawn.update(step if state == UP else state for step, state in steps(group, found))
    items = []
    if found.by == "state":
        items.append(_item(None, UP, "up", drawn[None], found, pencil))
    else:
        items += [
            _item(step, UP, _step_name(step, found), drawn[step], found, pencil) for step in range(_STEPS)
        ]
        if drawn[None]:
            items.append(_item(None, UP, f"without {found.resource_class}", drawn[None], found, pencil))
    for state, name in ((DISABLED, "disabled"), (DOWN, "down")):
        if drawn[state]:
            items.append(_item(None, state, name, drawn[state], found, pencil))
    line = Text()
    for item in items:
        if line.plain and pencil.columns is not None and line.cell_len + 2 + item.cell_len > pencil.columns:
            yield line
            line = Text()
        line.append("  " if line.plain else "").append_text(item)
    yield line


def _item(step: int | None, state: str, name: str, number: int, found: DrawnMap, pencil: Pencil) -> Text:
    return Text.assemble(_character(step, state, found, pencil), f" {name} ", (f"{number:,}", "bold"))


def _step_name(step: int, found: DrawnMap) -> str:
    """Return the upper end of a step: a share in use, or free units."""
    nothing, every = ("none free", f"{found.most or 0:,} free") if found.by == "free" else ("unused", "full")
    if step in (0, _STEPS - 1):
        return nothing if step == 0 else every
    share = step / (_STEPS - 2)
    if found.by == "free":
        return f"to {share * (found.most or 0):,.0f}"
    return f"to {share:.0%}" if step < _STEPS - 2 else "to 99%"


def _folded(parts: Sequence[str], pencil: Pencil) -> Iterator[Text]:
    """Yield parts of a sentence on one line, or on several if they do not fit."""
    line = ""
    for part in parts:
        joined = f"{line}; {part}" if line else part
        if line and pencil.columns is not None and cell_len(joined) > pencil.columns:
            yield Text(line, "bold")
            joined = part
        line = joined
    yield Text(line, "bold", overflow="fold")
