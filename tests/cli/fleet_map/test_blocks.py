"""The map of a fleet as lines: what each character says, that numbers add up, that lines fit the screen."""

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from roost.cli.fleet_map.answer import LEVELS, DrawnAmounts, DrawnGroup, DrawnMap
from roost.cli.fleet_map.blocks import Pencil, map_lines

PIPE = Pencil(None, colours=False, blocks=True)


def group(levels: str | None, states: str | None = None, zone: str = "nova", **more: object) -> DrawnGroup:
    """A group of hosts by their characters; all are up unless ``states`` says otherwise."""
    states = states or "." * len(levels or "")
    found = DrawnGroup(
        zone=zone,
        label="",
        cell="cell1",
        hosts=len(states),
        up=states.count("."),
        disabled=states.count("!"),
        down=states.count("x"),
        amounts=DrawnAmounts(1000, 250, 12, 512),
        levels=levels,
        states=states,
        names=[f"host-{place:05}" for place in range(0, len(states), 100)],
    )
    for name, value in more.items():
        setattr(found, name, value)
    return found


def drawn(*groups: DrawnGroup, by: str = "used", most: int | None = None) -> DrawnMap:
    hosts = sum(each.hosts for each in groups)
    return DrawnMap(7, "0" * 16, "VCPU", by, ["VCPU"], most, hosts, [*groups])  # type: ignore[arg-type]


def lines(found: DrawnMap, pencil: Pencil = PIPE) -> list[str]:
    return [line.plain for line in map_lines(found, pencil)]


def blocks(found: DrawnMap, pencil: Pencil = PIPE) -> str:
    """The characters of all hosts, without the names before them."""
    at = next(number for number, line in enumerate(lines(found, pencil)) if line == "")
    drawn = [line for line in lines(found, pencil)[at:] if line.startswith(("host-", "…"))]
    return "".join(line.partition(" ")[2] for line in drawn)


def test_a_character_rises_with_the_level_and_ends_are_exact() -> None:
    found = blocks(drawn(group(LEVELS + "-")))
    assert found == "▁" + "▂" * 5 + "▃" * 5 + "▄" * 5 + "▅" * 5 + "▆" * 5 + "▇" * 5 + "█" + "·"


def test_marks_take_the_place_of_blocks() -> None:
    assert blocks(drawn(group("0vgv", ".x!."))) == "▁x!█"
    assert blocks(drawn(group("0vgv", ".x!."), by="state")) == ".x!."


def test_without_levels_there_are_states_alone() -> None:
    found = drawn(group(None, "..x", amounts=None), by="state")
    assert blocks(found) == "..x"
    assert lines(found)[:2] == ["3 hosts: 2 up, 1 down", ". up 2  x down 1"]


def test_a_screen_without_block_characters_gets_digits() -> None:
    assert blocks(drawn(group("0gv-")), Pencil(None, colours=False, blocks=False)) == "047-"


@pytest.mark.parametrize("by", ["used", "free", "state"])
def test_the_numbers_of_the_legend_add_up_to_all_hosts(by: str) -> None:
    levels = (LEVELS + "-") * 9
    states = ("." * 30 + "!xx") * 9
    found = drawn(group(levels, states), group("-0v", zone="other"), by=by, most=96)
    legend = lines(found)[1]
    numbers = [int(each.replace(",", "")) for each in re.findall(r"([\d,]+)(?=  |$)", legend)]
    assert sum(numbers) == found.hosts == len(levels) + 3


def test_the_legend_says_where_each_step_ends() -> None:
    assert lines(drawn(group("0v")))[1] == (
        "▁ unused 1  ▂ to 17% 0  ▃ to 33% 0  ▄ to 50% 0  ▅ to 67% 0  ▆ to 83% 0  ▇ to 99% 0  █ full 1"
    )
    free = lines(drawn(group("0v-"), by="free", most=96))[1]
    assert free.startswith("▁ none free 1  ▂ to 16 0  ▃ to 32 0")
    assert free.endswith("█ 96 free 1  · without VCPU 1")


def test_heads_have_the_use_of_allocatable_of_total() -> None:
    found = lines(drawn(group("0" * 3), group("0v", zone="west", cell="")))
    amounts = "VCPU: 250 used of 1,000 (25%); 512 in total, 12 reserved"
    assert found[0] == "5 hosts: 5 up; VCPU: 500 used of 2,000 (25%); 1,024 in total, 24 reserved"
    assert f"zone nova, cell cell1: 3 up; {amounts}" in found
    assert f"zone west, no cell: 2 up; {amounts}" in found


def test_a_label_has_the_name_of_its_key() -> None:
    found = drawn(group("0", label="r1, r2"), group("v"))
    found.label = "rack"
    heads = [line.partition(":")[0] for line in lines(found) if line.startswith("zone")]
    assert heads == ["zone nova, rack r1, r2, cell cell1", "zone nova, no rack, cell cell1"]


def test_a_line_has_a_hundred_hosts_and_begins_with_the_first_name() -> None:
    found = lines(drawn(group("v" * 250)))[-3:]
    assert [line.partition(" ") for line in found] == [
        ("host-00000", " ", "█" * 100),
        ("host-00100", " ", "█" * 100),
        ("host-00200", " ", "█" * 50),
    ]


@pytest.mark.parametrize("columns", [20, 49, 60, 99, 100, 105, 111, 250])
def test_lines_fit_the_screen(columns: int) -> None:
    pencil = Pencil(columns, colours=False, blocks=True)
    wide = group("v" * 123, names=[f"compute-rack-{n:05}" for n in range(0, 123, pencil.a_line)])
    shown = lines(drawn(wide), pencil)
    # The console folds what is in words.
    assert max(cell_len(line) for line in shown if set(line) & set("▁█")) <= columns
    hosts = sum(line.count("█") for line in shown[shown.index("") :])
    assert hosts == 123
    assert any("hosts a line" in line for line in shown) == (columns < 100)


def test_the_end_of_a_name_is_kept_where_there_is_little_room() -> None:
    shown = lines(drawn(group("v" * 50, names=["compute-0123456"])), Pencil(60, colours=False, blocks=True))
    assert shown[-1] == "…-0123456 " + "█" * 50


def test_hostile_names_are_shown_as_escapes() -> None:
    evil = group("v", zone="a\x1b[2Jb", cell="\u202ec", names=["h\x07"])
    text = "\n".join(lines(drawn(evil)))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text


def pencil_of(**console: object) -> Pencil:
    return Pencil.of(Console(file=io.StringIO(), width=120, **console), 120)  # type: ignore[arg-type]


def test_colours_are_those_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert pencil_of(force_terminal=True, color_system="256").colours
    assert not pencil_of(force_terminal=True, color_system="standard").colours
    assert not pencil_of().colours
    monkeypatch.setenv("NO_COLOR", "1")
    assert not pencil_of(force_terminal=True, color_system="256").colours


def test_each_step_has_a_colour_of_its_own_and_marks_have_others() -> None:
    pencil = Pencil(120, colours=True, blocks=True)
    [line] = [*map_lines(drawn(group("016bglqv-v", ".........x")), pencil)][-1:]
    styles = [str(span.style) for span in line.spans if line.plain[span.start] in "█x·"]
    assert len(styles) == len(set(styles)) == 10
