"""The map of the fleet in a browser: places of hosts, their colours, and the pointer, keys and events."""

import random
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from support.browser import Windows, examine, overflow, small_targets
from support.event_streams import EventStreams
from support.map_fleets import TOPIC, MapFleet
from support.page_server import PageServer, Reply
from support.waiting import wait_for

MAP = "document.querySelector('[data-map]').fleetMap"

COLOURS = """(hosts) => {
  const { view } = document.querySelector("[data-map]").fleetMap;
  view.paint();
  const copy = new OffscreenCanvas(view.canvas.width, view.canvas.height);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(view.canvas, 0, 0);
  return hosts.map((host) => {
    const { x, y } = view.corner(host);
    return [...context.getImageData(x - view.x, y - view.y, 1, 1).data].slice(0, 3);
  });
}"""
"""The colours of hosts' left upper pixels on the canvas."""

RAMP = """() => [...Array(36).keys()].map((level) => {
  const probe = document.createElement("i");
  const state = ["map-none", "map-down", "map-disabled", "map-filtered"][level - 32];
  probe.style.color = `var(--${state ?? `ramp-${level}`})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
  probe.remove();
  return found;
})"""
"""The colours of the style, by byte."""

ARRANGED = """async (sizes) => {
  const { arrange, neighbour } = await import("/ui/assets/map_layout.js");
  let first = 0;
  const groups = sizes.map((count, number) => {
    const zone = `z${Math.floor(number / 5)}`;
    const group = { name: `r${number}`, zone, rack: "", cell: "", first, count };
    first += count;
    return group;
  });
  const made = arrange(groups, first, 1000, 500);
  const again = arrange(groups, first, 1000, 500);
  const places = [...made.places];
  const ways = [[1, 0], [-1, 0], [0, 1], [0, -1]];
  return {
    ...made, count: first, places, same: String(places) === String([...again.places]),
    found: places.map((place) => made.slots[place]),
    boxes: sizes.map((_, number) => [...made.boxes.subarray(4 * number, 4 * number + 4)]),
    reached: places.map((_, host) => ways.map(([x, y]) => neighbour(made, host, x, y))),
  };
}"""


PLAIN = '<!doctype html><html lang="en"><title>Host</title><link rel="icon" href="/ui/assets/favicon.svg">'
POINT = """(host) => {
  const { view, canvas } = document.querySelector("[data-map]").fleetMap;
  const [{ x, y }, box] = [view.corner(host), canvas.getBoundingClientRect()];
  return [box.x + x - view.x + view.pitch / 2, box.y + y - view.y + view.pitch / 2];
}"""


@pytest.fixture
def fleet(page_server: PageServer) -> MapFleet:
    """A fleet of 1,000 hosts in 25 racks."""
    return MapFleet(page_server, [40] * 25)


@pytest.fixture
def stream(page_server: PageServer) -> EventStreams:
    return EventStreams(page_server)


@pytest.fixture
def page(windows: Windows, fleet: MapFleet, stream: EventStreams) -> Iterator[Page]:
    page = windows.open("/ui/map")
    ready(page)
    yield page


def ready(page: Page, commit: int = 100) -> None:
    """Wait for the map as of a commit, and for its events."""
    expect(page.locator("[data-map]")).to_have_attribute("data-ready", str(commit))
    expect(page.locator("[data-live-state]")).to_have_text("Live")


def colours(page: Page, *hosts: int) -> list[list[int]]:
    found: list[list[int]] = page.evaluate(COLOURS, list(hosts))
    return found


def point_at(page: Page, host: int) -> None:
    """Move the pointer to a host."""
    box = page.locator(".map-frame canvas").bounding_box()
    assert box is not None
    x, y = page.evaluate(
        f"(host) => {{ const {{view}} = {MAP}; const {{x, y}} = view.corner(host);"
        " return [x - view.x + view.pitch / 2, y - view.y + view.pitch / 2]; }",
        host,
    )
    page.mouse.move(box["x"] + x, box["y"] + y)


def asked(server: PageServer, path: str) -> list[str]:
    return [each for each in server.asked if each.startswith(path)]


def test_each_host_has_one_place_in_the_box_of_its_group(windows: Windows, page_server: PageServer) -> None:
    page_server.answers["/ui"] = lambda _: Reply(PLAIN)
    page = windows.open("/ui")
    for seed in range(12):
        rng = random.Random(seed)
        sizes = [rng.choice([0, 1, 7, 40, rng.randint(1, 300)]) for _ in range(rng.randint(1, 14))]
        made: dict[str, Any] = page.evaluate(ARRANGED, sizes)
        assert made["found"] == list(range(made["count"])) and made["same"]
        check_boxes(sizes, made)
        check_ways(made)


def check_boxes(sizes: list[int], made: dict[str, Any]) -> None:
    """Boxes hold their hosts, are within the map, and do not touch each other or the names above them."""
    host = 0
    for size, (x, y, width, height) in zip(sizes, made["boxes"], strict=True):
        assert width * height >= size and x + width <= made["columns"] and y + height <= made["rows"]
        for _ in range(size):
            row, column = divmod(made["places"][host], made["columns"])
            assert x <= column < x + width and y <= row < y + height
            host += 1
    boxes = [box for box in made["boxes"] if box[2]]
    for (x, y, width, height), (x2, y2, width2, height2) in combinations(boxes, 2):
        beside = x + width < x2 or x2 + width2 < x
        above = y + height <= y2 - made["strip"] or y2 + height2 <= y - made["strip"]
        assert beside or above


def check_ways(made: dict[str, Any]) -> None:
    """Every host is reached from the first by the four keys."""
    seen, ahead = set(), [0] if made["count"] else []
    while ahead:
        host = ahead.pop()
        if host not in seen:
            seen.add(host)
            ahead.extend(made["reached"][host])
    assert seen == set(range(made["count"]))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_hundred_thousand_hosts_have_the_colours_of_their_levels(
    windows: Windows, page_server: PageServer, stream: EventStreams, theme: str
) -> None:
    fleet = MapFleet(page_server, [40] * 2500)
    page = windows.open("/ui/map", theme=theme)  # type: ignore[arg-type]
    ready(page)
    ramp = page.evaluate(RAMP)
    hosts = [0, *random.Random(2).sample(range(100_000), 500), 99_999]
    assert colours(page, *hosts) == [ramp[fleet.levels[host]] for host in hosts]
    legend = page.locator(".map-legend")
    expect(legend).to_contain_text(f"VCPU used, {sum(value < 32 for value in fleet.levels):,} hosts")
    expect(legend).to_contain_text(f"down {fleet.levels.count(33):,}")
    if theme == "light":
        print("script of a frame while the map is dragged, milliseconds:", page.evaluate(FRAMES))


FRAMES = """async () => {
  const { view } = document.querySelector("[data-map]").fleetMap;
  const times = [];
  for (const steps of [0, 2, 5, 8]) {
    view.fit();
    view.zoom(steps);
    for (let frame = 0; frame < 20; frame++) {
      view.move(view.x + 20, view.y + 15);
      cancelAnimationFrame(view.asked);
      await new Promise(requestAnimationFrame);
      const begun = performance.now();
      view.paint();
      times.push(performance.now() - begun);
    }
  }
  times.sort((one, other) => one - other);
  return { p50: times[40], p95: times[76] };
}"""


def test_events_change_hosts_and_the_legend(page: Page, fleet: MapFleet, stream: EventStreams) -> None:
    ramp = page.evaluate(RAMP)
    before = fleet.levels.count(33)
    old = '{"layout": "layout-1", "commit": 100, "changes": [[4, 31]]}'
    was = fleet.levels[4]
    stream.send(TOPIC, old)
    stream.send(TOPIC, fleet.change({0: 33, 999: 31}))
    ready(page, 101)
    assert colours(page, 0, 999, 4) == [ramp[33], ramp[31], ramp[was]]
    expect(page.locator(".map-legend")).to_contain_text(f"down {before + 1}")
    stream.send(TOPIC, fleet.change(dict.fromkeys(range(1000), 7)))
    ready(page, 102)
    assert colours(page, 0, 500, 999) == [ramp[7]] * 3


def test_after_a_gap_in_the_events_and_with_a_new_layout_the_map_is_read_again(
    page: Page, page_server: PageServer, fleet: MapFleet, stream: EventStreams
) -> None:
    fleet.change({5: 33})  # its event is lost
    stream.end()
    wait_for(lambda: len(stream.topics) == 2)
    ready(page, 101)
    assert colours(page, 5) == [page.evaluate(RAMP)[33]]

    fleet.layout = "layout-2"
    fleet.groups[0]["rack"] = "renamed"
    stream.send("layout", "layout-2")
    wait_for(lambda: page.evaluate(f"{MAP}.groups[0].name") == "renamed")
    fleet.layout = "layout-3"  # its event is lost, too: the next change tells
    stream.send(TOPIC, fleet.change({6: 34}))
    wait_for(lambda: page.evaluate(f"{MAP}.data.layout") == "layout-3")
    ready(page, 102)


def test_the_form_changes_the_levels_and_the_address(
    page: Page, fleet: MapFleet, stream: EventStreams
) -> None:
    ramp = page.evaluate(RAMP)
    page.evaluate("window.earlier = true")
    page.get_by_label("Colour").select_option("free")
    expect(page.locator(".map-legend")).to_contain_text("VCPU free")
    assert re.search(r"\?by=free&class=VCPU$", page.url) and page.evaluate("window.earlier")
    host = next(host for host, value in enumerate(fleet.levels) if value < 16)
    assert colours(page, host) == [ramp[31 - fleet.levels[host]]]
    wait_for(lambda: stream.topics[-1] == ["layout", "levels:free:VCPU"])


def test_what_changes_more_than_the_picture_loads_the_page_anew(page: Page) -> None:
    page.evaluate("window.earlier = true")
    page.get_by_label("Class").select_option("MEMORY_MB")
    page.wait_for_url(re.compile(r"\bclass=MEMORY_MB\b"))
    wait_for(lambda: page.evaluate("window.earlier") is None)


def test_the_pointer_tells_the_place_at_once_and_the_name_at_rest(
    page: Page, page_server: PageServer
) -> None:
    tip = page.locator(".map-tip")
    # Between two moves no time passes for the page, however long the machine takes.
    page.clock.install()
    page.clock.pause_at(datetime.now() + timedelta(hours=1))
    for host in (3, 4, 5, 6, 7):
        point_at(page, host)
        page.clock.run_for(20)
    expect(tip).to_contain_text("az1 / r01 / cell1")
    assert not asked(page_server, "/ui/map/host")
    page.clock.resume()
    expect(tip).to_contain_text("compute-7.example.net")
    assert len(asked(page_server, "/ui/map/host")) == 1  # not for each host on the way
    known = len(asked(page_server, "/ui/map/host"))
    page.mouse.move(5, 5)
    expect(tip).to_be_hidden()
    point_at(page, 7)
    expect(tip).to_contain_text("level")
    assert len(asked(page_server, "/ui/map/host")) == known


def test_a_click_selects_and_a_double_click_opens(page: Page, page_server: PageServer) -> None:
    page_server.answers["/ui/hosts/41"] = lambda _: Reply(PLAIN)
    point_at(page, 41)
    page.mouse.down()
    page.mouse.up()
    card = page.locator(".map-card")
    expect(card.get_by_role("link", name="compute-41.example.net")).to_have_attribute("href", "/ui/hosts/41")
    page.mouse.dblclick(*page.evaluate(POINT, 41))
    expect(page).to_have_url(re.compile("/ui/hosts/41$"))


def test_the_keys_reach_every_host_open_it_and_go_to_the_search(page: Page, page_server: PageServer) -> None:
    page_server.answers["/ui/hosts/999"] = lambda _: Reply(PLAIN)
    card = page.locator(".map-card")
    page.locator("h1").click()
    for _ in range(7):  # two lists, the search, three buttons
        page.keyboard.press("Tab")
    expect(page.locator(".map-frame")).to_be_focused()
    for key, host in (("Home", 0), ("ArrowRight", 1), ("ArrowDown", 9), ("PageDown", 40), ("ArrowLeft", 7)):
        page.keyboard.press(key)
        expect(card).to_contain_text(f"compute-{host}.")
    before = page.evaluate(f"{MAP}.view.pitch")
    page.keyboard.press("+")
    page.keyboard.press("+")
    assert page.evaluate(f"{MAP}.view.pitch") > before
    page.keyboard.press("End")
    expect(card).to_contain_text("compute-999.")
    inside = f"(() => {{ const {{view, canvas}} = {MAP}; const {{x, y}} = view.corner(999);"
    assert page.evaluate(f"{inside} return x > view.x && y + view.pitch < view.y + canvas.height }})()")
    page.keyboard.press("0")
    assert page.evaluate(f"{MAP}.view.pitch") == before
    page.keyboard.press("/")
    expect(page.get_by_label("Find a host")).to_be_focused()
    page.keyboard.type("compute-999")
    page.keyboard.press("Enter")
    expect(page.locator(".map-frame")).to_be_focused()
    expect(card).to_contain_text("compute-999.")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/ui/hosts/999$"))


def test_the_wheel_zooms_where_the_pointer_is_once_the_map_has_the_focus(page: Page) -> None:
    page.set_viewport_size({"width": 1200, "height": 500})
    wait_for(lambda: page.evaluate(f"{MAP}.width") < 1200)
    point_at(page, 500)
    before = page.evaluate(f"{MAP}.view.pitch")
    page.mouse.wheel(0, 120)
    expect(page.locator(".map-hint")).to_contain_text("Ctrl")
    wait_for(lambda: page.evaluate("scrollY") > 0)
    assert page.evaluate(f"{MAP}.view.pitch") == before
    point_at(page, 500)
    page.mouse.down()
    page.mouse.up()
    for _ in range(3):
        page.mouse.wheel(0, -120)
    wait_for(lambda: page.evaluate(f"{MAP}.view.pitch") > before)
    page.wait_for_timeout(200)
    assert page.evaluate(f"{MAP}.view.hovered") == 500  # it stays under the pointer

    corner = page.evaluate(f"[{MAP}.view.x, {MAP}.view.y]")
    page.mouse.down()
    x, y = page.evaluate(POINT, 500)
    page.mouse.move(x - 60, y - 40, steps=4)
    page.mouse.up()
    moved = page.evaluate(f"[{MAP}.view.x, {MAP}.view.y]")
    assert moved == [pytest.approx(corner[0] + 60, abs=20), pytest.approx(corner[1] + 40, abs=20)]
    page.get_by_role("button", name="All", exact=True).click()
    assert page.evaluate(f"{MAP}.view.pitch") == before


def test_two_fingers_zoom_and_one_drags(windows: Windows, fleet: MapFleet, stream: EventStreams) -> None:
    page = windows.open("/ui/map", width=390, has_touch=True)
    ready(page)
    touch = page.context.new_cdp_session(page)

    def touches(kind: str, *points: tuple[float, float]) -> None:
        places = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        touch.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": places})

    before = page.evaluate(f"{MAP}.view.pitch")
    x, y = page.evaluate(POINT, 500)
    touches("Start", (x - 20, y), (x + 20, y))
    for spread in (30, 50, 80):
        touches("Move", (x - spread, y), (x + spread, y))
    touches("End")
    wait_for(lambda: page.evaluate(f"{MAP}.view.pitch") > before)
    corner = page.evaluate(f"[{MAP}.view.x, {MAP}.view.y]")
    touches("Start", (x, y))
    for moved in (10, 30, 50):
        touches("Move", (x - moved, y - moved))
    touches("End")
    wait_for(lambda: page.evaluate(f"[{MAP}.view.x, {MAP}.view.y]") != corner)
    assert page.evaluate(f"{MAP}.view.selected") == -1


def test_a_click_on_the_name_of_a_group_shows_it_large(page: Page) -> None:
    x, y = page.evaluate(POINT, 40)
    page.mouse.move(x, y - page.evaluate(f"{MAP}.view.pitch") * 0.9)
    expect(page.locator(".map-tip")).to_contain_text("40 hosts")
    before = page.evaluate(f"{MAP}.view.pitch")
    page.mouse.down()
    page.mouse.up()
    assert page.evaluate(f"{MAP}.view.pitch") > 1.5 * before


def test_a_map_that_cannot_be_read_says_so_and_is_tried_again(
    windows: Windows, page_server: PageServer, fleet: MapFleet, stream: EventStreams
) -> None:
    answer = page_server.answers["/ui/map/levels"]
    page_server.answers["/ui/map/levels"] = lambda _: Reply(status=503)
    page = windows.open("/ui/map", expected=("503",))
    expect(page.get_by_role("alert")).to_contain_text("The map cannot be read (503")
    page_server.answers["/ui/map/levels"] = answer
    page.get_by_role("button", name="Try again").click()
    ready(page)
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize("sizes", [[], [1], [10_000]])
def test_no_host_one_host_and_a_rack_of_ten_thousand(
    windows: Windows, page_server: PageServer, stream: EventStreams, sizes: list[int]
) -> None:
    fleet = MapFleet(page_server, sizes, zones=0)
    page = windows.open("/ui/map")
    ready(page)
    page.locator(".map-frame").focus()
    page.keyboard.press("ArrowRight")
    if sizes:
        assert colours(page, sizes[0] - 1) == [page.evaluate(RAMP)[fleet.levels[-1]]]
        expect(page.locator(".map-card")).to_contain_text("compute-")


@pytest.mark.parametrize(
    ("width", "settings"), [(1440, {"theme": "dark"}), (390, {"forced_colors": "active"})]
)
def test_the_map_is_accessible(
    windows: Windows, fleet: MapFleet, stream: EventStreams, width: int, settings: dict[str, Any]
) -> None:
    page = windows.open("/ui/map", width=width, **settings)
    ready(page)
    page.evaluate(f"{MAP}.select(3)")
    expect(page.locator(".map-card")).to_contain_text("compute-3.")
    assert examine(page) == []
    assert overflow(page) == 0
    assert small_targets(page) == []
