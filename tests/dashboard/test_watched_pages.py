"""The watch over pages finds each fault that it is there for."""

import re

import pytest

from support.browser import Windows, examine, small_targets
from support.page_server import PageServer, Reply

HEAD = '<!doctype html><html lang="en"><title>A page</title><link rel="icon" href="data:,">'


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<script>1</script>", r"script-src-elem inline"),
        ('<p style="color: red">', r"style-src-attr inline"),
        ('<img src="https://example.org/a.png" alt="">', r"img-src https://example.org"),
        ('<a href="https://example.org/">out</a>', r"request to another host: https://example.org/"),
        ('<img src="/nowhere.png" alt="">', r"console error: .*404"),
        ('<script src="/broken.js"></script>', r"script: .*of undefined"),
    ],
)
def test_each_fault_is_found(windows: Windows, page_server: PageServer, body: str, fault: str) -> None:
    page_server.answers["/ui"] = lambda _: Reply(HEAD + body)
    page_server.answers["/broken.js"] = lambda _: Reply("undefined.x", "text/javascript")
    page = windows.open("/ui", expected=(".*",))
    watch = windows.watches[0]
    watch.expected.clear()
    if "href" in body:
        page.route("https://example.org/", lambda route: route.fulfill(body="elsewhere"))
        page.get_by_role("link").click()
    page.wait_for_load_state("networkidle")
    found = watch.faults
    watch.expected.append(".*")
    assert any(re.search(fault, each) for each in found), found


def test_axe_and_sizes_are_examined(windows: Windows, page_server: PageServer) -> None:
    body = '<h1>A</h1><a href="#b">b</a><img src="/ui/assets/favicon.svg">'
    page_server.answers["/ui"] = lambda _: Reply(HEAD + body)
    page = windows.open("/ui")
    assert any(each.startswith("image-alt (critical)") for each in examine(page))
    assert len(small_targets(page)) == 1
