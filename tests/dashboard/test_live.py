"""The live parts of pages: one event stream for all windows, regions fetched again, polite sentences."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from support.browser import Windows
from support.event_streams import EventStreams
from support.page_server import POLICY, PageServer, Reply
from support.waiting import wait_for

NONCE = "c2VjcmV0"
STRICT = (
    POLICY.replace("script-src 'self'", f"script-src 'self' 'nonce-{NONCE}'")
    + "; require-trusted-types-for 'script'; trusted-types htmx roost"
)
"""The policy of pages with htmx, and the types that it asks for on top."""

PAGE = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Live</title>
<meta name="htmx-config"
 content='{{"extensions": "hx-csp", "includeIndicatorCSS": false, "history": false}}'>
<link rel="icon" href="/ui/assets/favicon.svg"><link rel="stylesheet" href="/ui/assets/roost.css">
<script nonce="{NONCE}" src="/ui/assets/vendor/htmx.min.js" defer></script>
<script src="/ui/assets/vendor/hx-csp.min.js" defer></script>
<script src="/ui/assets/live.js" type="module"></script></head>
<body data-live="/ui/live"><main><h1>Live</h1><span class="live-state" data-live-state></span>
<button type="button" data-live-pause-button aria-pressed="false">Pause</button>
<p role="status" data-live-status></p>
<div id="region" data-live-topic="fleet" data-live-pause="100" hx-nonce="{NONCE}" hx-get="/ui/part"
 hx-trigger="live" hx-swap="innerMorph"><p>part 0</p><a href="#a">a link</a></div></main></body></html>"""


@pytest.fixture
def page_server() -> Iterator[PageServer]:
    with PageServer(policy=STRICT) as server:
        yield server


@pytest.fixture
def stream(page_server: PageServer) -> EventStreams:
    parts = iter(range(1, 1000))
    page_server.answers["/ui"] = lambda _: Reply(PAGE)
    page_server.answers["/ui/part"] = lambda _: Reply(
        f'<p data-announce="part {(number := next(parts))}" id="sentence">part {number}</p>'
        '<a href="#a">a link</a>'
    )
    return EventStreams(page_server)


def is_live(page: Page) -> None:
    expect(page.locator("[data-live-state]")).to_have_text("Live")


def test_an_event_makes_htmx_fetch_the_region_under_a_policy_without_eval(
    windows: Windows, stream: EventStreams
) -> None:
    page = windows.open("/ui")
    is_live(page)
    stream.send("fleet", "7")
    expect(page.locator("#region p")).to_have_text("part 1")
    stream.send("hosts", "8")  # nobody asked for it
    stream.send("fleet", "9")
    expect(page.locator("#region p")).to_have_text("part 2")
    assert stream.topics == [["fleet"]]


def test_a_region_waits_for_the_pointer_the_focus_and_the_pause(
    windows: Windows, stream: EventStreams
) -> None:
    page = windows.open("/ui")
    is_live(page)
    page.locator("#region").hover()
    stream.send("fleet", "7")
    expect(page.locator("#region[data-stale]")).to_be_attached()
    page.wait_for_timeout(600)
    expect(page.locator("#region p")).to_have_text("part 0")
    page.mouse.move(1400, 800)
    expect(page.locator("#region p")).to_have_text("part 1")

    page.locator("#region a").focus()
    stream.send("fleet", "8")
    expect(page.locator("#region[data-stale]")).to_be_attached()
    page.wait_for_timeout(600)
    expect(page.locator("#region p")).to_have_text("part 1")
    # With the mouse the focus leaves before the click has paused, and a slow machine loads the part between.
    page.get_by_role("button", name="Pause").dispatch_event("click")
    expect(page.locator("[data-live-state]")).to_have_text("Paused")
    page.evaluate("document.activeElement.blur()")
    page.wait_for_timeout(600)
    expect(page.locator("#region p")).to_have_text("part 1")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#region p")).to_have_text("part 2")


def test_windows_of_a_browser_share_one_stream_of_all_their_topics(
    windows: Windows, stream: EventStreams
) -> None:
    page = windows.open("/ui")
    is_live(page)
    other = page.context.new_page()
    other.goto("/ui")
    is_live(other)
    assert stream.topics == [["fleet"]]
    other.evaluate("document.querySelector('h1').dataset.liveWant = 'levels:VCPU layout'")
    wait_for(lambda: stream.topics[-1] == ["fleet", "layout", "levels:VCPU"])
    other.evaluate(
        """document.addEventListener("roost:live", ({detail}) => {
          document.title = detail.topic + detail.data;
        })"""
    )
    is_live(other)
    page.wait_for_timeout(300)
    stream.send("levels:VCPU", "[1]")
    expect(other).to_have_title("levels:VCPU[1]")
    expect(page).to_have_title("Live")
    other.goto("about:blank")
    wait_for(lambda: stream.topics[-1] == ["fleet"])
    assert len(stream.topics) == 3


def test_a_stream_that_ends_or_is_refused_comes_back_and_the_region_is_read_again(
    windows: Windows, stream: EventStreams
) -> None:
    page = windows.open("/ui", expected=("503", "ERR_INCOMPLETE|ERR_CONNECTION"))
    is_live(page)
    stream.status = 503
    stream.end()
    expect(page.locator("[data-live-state]")).to_have_text(re.compile("Not live"))
    stream.status = 200
    is_live(page)
    expect(page.locator("#region p")).to_have_text("part 1")


def test_sentences_are_said_once_and_not_the_first_of_a_region(
    windows: Windows, stream: EventStreams
) -> None:
    page = windows.open("/ui")
    is_live(page)
    said = page.locator("[data-live-status]")
    stream.send("fleet", "1")
    expect(page.locator("#region p")).to_have_text("part 1")
    page.wait_for_timeout(600)
    expect(said).to_be_empty()
    stream.send("fleet", "2")
    expect(said).to_have_text("part 2")
    stream.send("fleet", "3")
    expect(page.locator("#region p")).to_have_text("part 3")
    page.wait_for_timeout(600)
    expect(said).to_have_text("part 2")  # the next in 15 s


def test_a_browser_without_shared_workers_has_a_stream_a_page(windows: Windows, stream: EventStreams) -> None:
    page = windows.open()
    page.add_init_script("delete globalThis.SharedWorker")
    page.goto("/ui")
    is_live(page)
    stream.send("fleet", "7")
    expect(page.locator("#region p")).to_have_text("part 1")
    assert stream.topics == [["fleet"]]


def test_attributes_of_htmx_work_with_the_nonce_of_their_answer_alone(
    windows: Windows, page_server: PageServer, stream: EventStreams
) -> None:
    policy = STRICT.replace(NONCE, "YW5vdGhlcg==")
    page_server.answers["/ui/part"] = lambda _: Reply(
        """<button hx-nonce="YW5vdGhlcg==" hx-get="/ui/more">good</button>
        <button hx-nonce="c3RvbGVu" hx-get="/ui/evil">bad</button>
        <button hx-get="/ui/evil" hx-on:click="document.title = 'evil'">worse</button>""",
        headers={"Content-Security-Policy": policy},
    )
    page_server.answers["/ui/more"] = lambda _: Reply("more")
    page = windows.open("/ui", expected=(r"\[hx-csp\] blocked <button>",))
    is_live(page)
    stream.send("fleet", "1")
    for name in ("worse", "bad", "good"):
        page.get_by_role("button", name=name).click()
    expect(page.get_by_role("button", name="more")).to_be_visible()
    assert "/ui/more" in page_server.asked and "/ui/evil" not in page_server.asked
    assert page.title() == "Live"
