"""Parsing of libvirt's XML."""

from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from roost.agent.errors import UnreadableDescription

_KIB = {"b": 1 / 1024, "bytes": 1 / 1024, "KiB": 1, "MiB": 1024, "GiB": 1024**2, "TiB": 1024**3}


def parsed(text: str, tag: str) -> Element:
    """Return the root of a document, which must have a tag. Raises `UnreadableDescription`."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise UnreadableDescription(f"libvirt's {tag} is no XML: {error}") from error
    if root.tag != tag:
        raise UnreadableDescription(f"libvirt tells <{root.tag}> instead of <{tag}>")
    return root


def text_at(element: Element, path: str) -> str | None:
    """Return the stripped text of the first element at a path; None if it is missing or empty."""
    text = (element.findtext(path) or "").strip()
    return text or None


def number(element: Element, attribute: str) -> int | None:
    """Return a number, decimal or 0x…, of an attribute; None without it. Raises `UnreadableDescription`."""
    return None if (text := element.get(attribute)) is None else whole(text, f"{element.tag} {attribute}")


def whole(text: str, what: str) -> int:
    """Return a number, decimal or as 0x…. Raises `UnreadableDescription`."""
    try:
        return int(text, 16 if text.strip().startswith("0x") else 10)
    except ValueError as error:
        raise UnreadableDescription(f"libvirt tells {text!r} as {what}, which is no number") from error


def kib(element: Element) -> int:
    """Return an amount of memory, given with its unit, in KiB. Raises `UnreadableDescription`."""
    unit = element.get("unit", "KiB")
    if unit not in _KIB:
        raise UnreadableDescription(f"libvirt tells {element.tag} in {unit!r}")
    return int(whole(element.text or "", element.tag) * _KIB[unit])


def supported(element: Element, path: str) -> Element | None:
    """Return the element at a path if it is marked as supported."""
    found = element.find(path)
    return None if found is None or found.get("supported") != "yes" else found


def enum(element: Element | None, name: str) -> frozenset[str]:
    """Return the values of an enumeration of capabilities; none without it."""
    if element is None:
        return frozenset()
    return frozenset(value.text or "" for value in element.findall(f"enum[@name='{name}']/value"))


def range_set(text: str) -> frozenset[int]:
    """Return the numbers in a text such as ``0-3,8,^2``. Raises ``ValueError``."""
    found: set[int] = set()
    without: set[int] = set()
    for part in filter(None, (each.strip() for each in text.split(","))):
        into = without if part.startswith("^") else found
        first, dash, last = part.removeprefix("^").partition("-")
        low, high = int(first), int(last if dash else first)
        if high < low or high >= 2**16:
            raise ValueError(f"{part!r} is no range")
        into.update(range(low, high + 1))
    return frozenset(found - without)


def ranges(numbers: frozenset[int]) -> str:
    """Return numbers as libvirt writes them: ``0-3,8``."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in _runs(numbers))


def _runs(numbers: frozenset[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for each in sorted(numbers):
        if last is not None and first is not None and each != last + 1:
            yield first, last
            first = each
        first, last = each if first is None else first, each
    if first is not None and last is not None:
        yield first, last
