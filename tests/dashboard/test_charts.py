"""Charts in a browser: the line in its colour, the values at the pointer, the way to a time, new numbers."""

import html
import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from support.browser import Windows, examine
from support.page_server import PageServer, Reply

HEAD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Charts</title>
<link rel="icon" href="/ui/assets/favicon.svg"><link rel="stylesheet" href="/ui/assets/vendor/uPlot.min.css">
<link rel="stylesheet" href="/ui/assets/roost.css"><link rel="stylesheet" href="/ui/assets/figures.css">
<script src="/ui/assets/theme.js"></script>
<script src="/ui/assets/vendor/uPlot.iife.min.js" defer></script>
<script src="/ui/assets/charts.js" type="module"></script></head><body><main class="main"><h1>Charts</h1>
<button type="button" data-theme-choice>Theme</button>"""

BEGIN = 1_764_000_000
DATA: dict[str, Any] = {
    "x": [BEGIN + 300 * step for step in range(101)],
    "series": [
        {"name": "used", "colour": "used", "values": [50] * 101, "area": True},
        {"name": "refused", "colour": "fails", "values": [10.0] * 50 + [None] * 51},
    ],
    "href": "/ui/host?at={x}",
    "group": "fleet",
    "high": 100,
}

PAINTED = """(colour) => {
  const probe = document.createElement("i");
  probe.style.color = `var(--${colour})`;
  document.body.append(probe);
  const wanted = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
  probe.remove();
  return [...document.querySelectorAll(".chart canvas")].map((canvas) => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height);
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    const rows = new Map();
    for (let at = 0; at < data.length; at += 4)
      if (data[at + 3] > 200 && wanted.every((each, part) => Math.abs(each - data[at + part]) < 3)) {
        const row = Math.floor(at / 4 / canvas.width);
        rows.set(row, (rows.get(row) ?? 0) + 1);
      }
    const share = [...rows.values()].reduce((one, other) => Math.max(one, other), 0) / canvas.width;
    return Math.round(100 * share);
  });
}"""
"""For each chart: in how many per cent of its width there is a line of a colour."""


def figure(data: dict[str, Any], name: str) -> str:
    return (
        f"<figure class='chart card' id='{name}' data-chart='{html.escape(json.dumps(data))}'>"
        f"<figcaption>{name}</figcaption><div class='chart-plot'></div><div class='chart-readout'></div>"
        "<details><summary>As a table</summary></details></figure>"
    )


@pytest.fixture
def page(windows: Windows, page_server: PageServer) -> Page:
    nothing = {"x": [], "series": [{"name": "used", "colour": "used", "values": []}]}
    body = figure(DATA, "one") + figure({**DATA, "href": None}, "two") + figure(nothing, "nothing")
    page_server.answers["/ui"] = lambda _: Reply(HEAD + body)
    page_server.answers["/ui/host"] = lambda _: Reply(HEAD)
    page = windows.open("/ui")
    expect(page.locator("#one canvas")).to_be_visible()
    return page


def test_lines_have_their_colours_and_gaps_in_both_themes(page: Page) -> None:
    for _ in range(3):  # by the system, light, dark
        used, refused = page.evaluate(PAINTED, "used"), page.evaluate(PAINTED, "fails")
        assert all(85 < each < 99 for each in used) and all(40 < each < 50 for each in refused)
        page.get_by_role("button", name="Theme").click()
    expect(page.locator("#nothing")).to_contain_text("Nothing is known of this time.")
    assert examine(page) == []


def test_the_pointer_has_the_values_of_a_time_in_all_charts_of_a_group(page: Page) -> None:
    readouts = page.locator(".chart-readout")
    expect(readouts.nth(1)).to_have_text(re.compile("used 50refused –.*Tue 25 Nov, 00:20:00"))
    over = page.locator("#one .u-over").bounding_box()
    assert over is not None
    page.mouse.move(over["x"] + over["width"] / 4, over["y"] + 20)
    for each in range(2):
        expect(readouts.nth(each)).to_have_text(re.compile("used 50refused 10.*Mon 24 Nov, 18:05:00"))
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_url(re.compile(rf"/ui/host\?at={BEGIN + 25 * 300}$"))


def test_new_numbers_are_drawn_in_the_same_chart(page: Page) -> None:
    page.evaluate("document.querySelector('#one canvas').dataset.same = 'yes'")
    new = {**DATA, "series": [{**DATA["series"][0], "values": [100] * 101}, DATA["series"][1]]}
    page.evaluate(
        """(text) => {
          document.querySelector("#one").dataset.chart = text;
          document.querySelector("#two").remove();
          document.dispatchEvent(new CustomEvent("htmx:after:swap"));
        }""",
        json.dumps(new),
    )
    expect(page.locator("#one .chart-readout")).to_contain_text("used 100")
    assert page.evaluate("document.querySelector('#one canvas').dataset.same") == "yes"
