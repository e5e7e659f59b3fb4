"""All pages of the dashboard in a browser, on a cloud that has something to show on each of them."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, get_type_hints

import httpx
import msgspec
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from roost.dashboard.app import PAGES
from roost.dashboard.page import TimedQuery
from support.browser import Windows, examine, overflow, small_targets
from support.page_checks import (
    addresses_in,
    focus_faults,
    foreign_faults,
    keyboard_faults,
    mouse_faults,
    navigation_faults,
    shape,
)
from support.shown_cloud.examples import examples, past, view
from support.shown_cloud.process import ShownCloud

# It takes a minute and a half of a core: too long for every change.
pytestmark = pytest.mark.nightly

PATHS = {page.path: page for page in PAGES}
TIMED = {path for path, page in PATHS.items() if issubclass(page.query, TimedQuery)}

FIRST_PAINT = 150_000
"""Bytes with gzip that a page and all that it loads may have, in a fleet of any size."""


SIZES = {"54-hosts": (6, 9), "1000-hosts": (25, 40)}
"""Racks, and hosts of each, by the name of the test."""


@pytest.fixture(scope="module", params=SIZES)
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShownCloud]:
    racks, hosts = SIZES[request.param]
    with ShownCloud(tmp_path_factory.mktemp("cloud"), racks, hosts) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def client(cloud: ShownCloud) -> Iterator[httpx.Client]:
    """An operator's session, as far as HTTP goes."""
    with cloud.client() as client:
        yield client


@pytest.fixture(scope="module")
def windows(browser: Browser, cloud: ShownCloud) -> Iterator[Windows]:
    """Windows on the cloud. At the end of the file they fail if anything went wrong in one of them."""
    with Windows(browser, cloud.origin) as windows:
        yield windows


@pytest.fixture(scope="module")
def context(windows: Windows, client: httpx.Client, cloud: ShownCloud) -> BrowserContext:
    """The browser's part of the session: one for all tests, so that files are loaded once."""
    cookies = [{"name": each.name, "value": each.value, "url": cloud.origin} for each in client.cookies.jar]
    page = windows.open("", storage_state={"cookies": [], "origins": []})
    page.context.add_cookies(cookies)  # type: ignore[arg-type]
    return page.context


@pytest.fixture
def page(context: BrowserContext, windows: Windows) -> Iterator[Page]:
    """A window. Faults fail the test that made them."""
    page = context.new_page()
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    yield page
    page.close()
    [watch] = windows.watches
    assert watch.take_faults() == []


def go(page: Page, address: str) -> None:
    """Open a page."""
    answer = page.goto(address)
    assert answer is not None and answer.status == 200, f"{address}: {answer and answer.status}"


@pytest.mark.parametrize("path", PATHS)
def test_page_is_for_everybody(page: Page, client: httpx.Client, path: str) -> None:
    faults = []
    for number, address in enumerate(examples(client, path)):
        go(page, address)
        found = [*sizes(page), *foreign_faults(page), *focus_faults(page), *mouse_faults(page)]
        # The contrast takes most of axe's time, and is the same for all examples of a page.
        found += examine(page, but=("color-contrast",) if number else (), all_rows=False)
        if number == 0:
            found += [*dark(page), *keyboard_faults(page)]
        faults += [f"{address}: {each}" for each in found]
    assert not faults, "\n".join(faults)


def sizes(page: Page) -> list[str]:
    """What is wrong in windows of all widths; 720 is 1,440 at 200 %."""
    faults = []
    for width, height in ((390, 844), (720, 450), (1024, 768), (1440, 900)):
        page.set_viewport_size({"width": width, "height": height})
        if too_wide := overflow(page):
            faults.append(f"{too_wide} pixels wider than a window of {width}")
        faults += [f"in a window of {width}: {each}" for each in small_targets(page)]
    return faults


def dark(page: Page) -> list[str]:
    """What cannot be read in the dark."""
    page.emulate_media(color_scheme="dark")
    faults = [f"dark: {each}" for each in examine(page, only=("color-contrast",), all_rows=False)]
    page.emulate_media(color_scheme="light")
    return faults


@pytest.mark.parametrize("path", sorted(TIMED))
def test_page_shows_the_past(page: Page, client: httpx.Client, path: str) -> None:
    go(page, past(examples(client, path)[0]))
    assert [*examine(page, all_rows=False), *foreign_faults(page)] == []
    assert overflow(page) == 0


def test_all_rows_of_a_long_list_are_for_everybody(page: Page) -> None:
    go(page, "/ui/hosts")
    assert examine(page) == []


def test_content_is_reached_at_once_and_a_host_by_its_name_without_a_mouse(page: Page) -> None:
    go(page, "/ui")
    assert navigation_faults(page) == []
    page.get_by_role("searchbox").first.focus()
    page.keyboard.type("b1-01")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("b1-01")


def test_forced_colours_and_print_show_all(page: Page) -> None:
    go(page, "/ui/hosts")
    page.emulate_media(forced_colors="active")
    assert examine(page, only=("color-contrast",), all_rows=False) == []
    page.emulate_media(forced_colors="none", media="print")
    page.set_viewport_size({"width": 794, "height": 1123})  # A4
    assert overflow(page) == 0
    assert not page.get_by_role("navigation", name="Dashboard").is_visible()
    expect(page.get_by_role("table")).to_be_visible()


def test_each_json_twin_is_its_view(client: httpx.Client) -> None:
    for path, page in PATHS.items():
        kind = get_type_hints(getattr(page.view, "func", page.view))["return"]
        for address in examples(client, path):
            content = json.dumps(view(client, address))
            shown = msgspec.json.decode(content, type=kind)
            assert json.loads(msgspec.json.encode(shown)) == json.loads(content), address


def test_links_lead_somewhere(client: httpx.Client) -> None:
    """The links of all pages, of each kind of address one."""
    assert follow(client, addresses_of_all(client), some=1, beyond=False) > 3 * len(PATHS)


@pytest.mark.nightly
def test_links_of_linked_pages_lead_somewhere(client: httpx.Client) -> None:
    """The links of all pages and of those that they lead to, of each kind of address some."""
    follow(client, addresses_of_all(client), some=3, beyond=True)


def addresses_of_all(client: httpx.Client) -> list[str]:
    """Examples of all pages."""
    return [address for path in PATHS for address in examples(client, path)]


def follow(client: httpx.Client, first: list[str], *, some: int, beyond: bool) -> int:
    """Open pages, and some of each kind of address that they lead to; return how many were opened.

    ``beyond``: also those that these pages lead to, and so on.
    """
    wrong: dict[str, int] = {}
    followed, kinds, waiting = set[str](), Counter[str](), list(first)
    for address in waiting:
        given = address in first
        if address in followed or (not given and kinds[shape(address)] >= some):
            continue
        followed.add(address)
        kinds[shape(address)] += 1
        answer = client.get(address, headers={"accept": "text/html"})
        if answer.status_code == 303:
            waiting.append(answer.headers["location"])
        elif answer.status_code != 200:
            wrong[address] = answer.status_code
        elif answer.headers["content-type"].startswith("text/html") and (given or beyond):
            waiting += sorted(addresses_in(answer.text))
    assert wrong == {}
    return len(followed)


@pytest.mark.parametrize("path", ["/ui", "/ui/map"])
def test_first_paint_is_small(client: httpx.Client, path: str) -> None:
    sizes: dict[str, int] = {}
    waiting = [path, *(["/ui/map/layout", "/ui/map/levels?class=VCPU"] if path == "/ui/map" else [])]
    for address in waiting:
        if address in sizes:
            continue
        with client.stream("GET", address, headers={"accept-encoding": "gzip"}) as answer:
            text = answer.read().decode(errors="replace")
            assert answer.status_code == 200, address
            sizes[address] = answer.num_bytes_downloaded
        waiting += loaded_by(text)
    assert len(sizes) > 5
    assert sum(sizes.values()) < FIRST_PAINT, sizes


def loaded_by(text: str) -> list[str]:
    """The addresses of files that a page or a script loads."""
    found = re.findall(r'(?:src|href)="(/ui/assets/[^"#]+)', text)
    scripts = re.findall(r'(?:from|import) "\./([^"]+)"', text) + re.findall(r'URL\("\./([^"]+)"', text)
    return [*found, *(f"/ui/assets/{each}" for each in scripts)]


def test_a_device_that_is_taken_is_in_its_numa_cell(client: httpx.Client) -> None:
    of_gpu = view(client, examples(client, "/ui/instances/{uuid}")[0])["instance"]
    host = view(client, f"/ui/hosts/{of_gpu['node']}")
    devices: list[dict[str, Any]] = host["hardware"]["devices"]
    assert len(devices) == 4 and any(each["holder"] for each in devices)
    assert {each["numa_node"] for each in devices} == {0, 1}
    assert {each["kind"] for each in devices} == {"10de:2236 type-pci"}
