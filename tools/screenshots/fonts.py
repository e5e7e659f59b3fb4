"""The fonts in which a page is drawn, by the browser's own account."""

from typing import Final

from playwright.sync_api import Page

from screenshots.errors import NoScreenshots

FAMILIES: Final = {"Inter": "fonts-inter", "JetBrains Mono": "fonts-jetbrains-mono"}
"""The families that the dashboard's style names first -> Debian's packages with them."""

_WITH_TEXT: Final = """() => {
  document.body.replaceWith(document.body.cloneNode(true));
  const isText = (node) => node.nodeType === 3 && node.data.trim();
  for (const each of document.querySelectorAll("body *"))
    if ([...each.childNodes].some(isText) && each.checkVisibility()) each.dataset.hasText = "";
}"""
"""Marks elements that have text and are seen, in a copy of the page that nothing changes any more."""


def check_fonts(page: Page) -> None:
    """Raise `NoScreenshots` if a text of a page is drawn in another font than those of `FAMILIES`.

    A browser takes the next family where one is missing, and says nothing of it. The page is of no use any
    more: its scripts do not know the elements.
    """
    page.evaluate(_WITH_TEXT)
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
    marked = session.send("DOM.querySelectorAll", {"nodeId": root, "selector": "[data-has-text]"})["nodeIds"]
    found: dict[str, float] = {}
    for node in marked:
        for font in session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]:
            found[font["familyName"]] = found.get(font["familyName"], 0) + font["glyphCount"]
    session.detach()
    # Fontconfig has some weights as families of their own, such as Inter Medium.
    others = {family: count for family, count in found.items() if not family.startswith(tuple(FAMILIES))}
    if others or not found:
        drawn = ", ".join(f"{count:.0f} glyphs in {family}" for family, count in sorted(others.items()))
        raise NoScreenshots(
            f"{page.url} has {drawn or 'no text'}. Screenshots are drawn in {' and '.join(FAMILIES)} alone: "
            f"install {' and '.join(FAMILIES.values())} (tools/install-test-servers does)."
        )
