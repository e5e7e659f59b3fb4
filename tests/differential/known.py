"""The intended differences of Roost from upstream, by the words of docs/differences.md.

Each function returns whether the difference of two answers to an operation is one of a kind.
"""

from collections import defaultdict
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

from differential.operations import Operation
from support.wsgi import Answer

Case = Callable[[Operation, Answer, Answer], bool]


def _unknown_name(operation: Operation, upstream: Answer, roost: Answer) -> bool:
    return (
        operation.url.startswith(("/allocation_candidates", "/resource_providers?"))
        and (upstream.status, roost.status) == (200, 400)
        and not any(upstream.json.values())
        and b"No such " in roost.body
    )


def _bare_group(operation: Operation, upstream: Answer, roost: Answer) -> bool:
    """Upstream finds nothing for a group without resources that only forbids, and ignores its ``in_tree``."""
    asked = operation.url.startswith("/allocation_candidates") and operation.method == "GET"
    if not asked or upstream.status != 200 or roost.status != 200:
        return False
    by_suffix: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, value in parse_qsl(urlsplit(operation.url).query):
        for kind in ("resources", "required", "member_of", "in_tree"):
            if name.startswith(kind):
                by_suffix[name.removeprefix(kind)][kind].append(value)
    bare = [parameters for parameters in by_suffix.values() if "resources" not in parameters]
    only_forbids = any(
        all(part.startswith("!") for value in group["required"] for part in value.split(","))
        and all(value.startswith("!") for value in group["member_of"])
        for group in bare
    )
    theirs, ours = ([*map(str, answer.json["allocation_requests"])] for answer in (upstream, roost))
    return (only_forbids and not theirs) or (
        any(group["in_tree"] for group in bare) and set(ours) <= set(theirs)
    )


def _accepts_charset(operation: Operation, upstream: Answer, roost: Answer) -> bool:
    asked = ("accept", "application/json; charset=utf-8") in operation.more
    return asked and (upstream.status == 406 or upstream.headers["content-type"].startswith("text/plain"))


def _media_type_of_nothing(operation: Operation, upstream: Answer, roost: Answer) -> bool:
    return (
        (operation.method, operation.version) == ("PUT", 0)
        and operation.url.partition("?")[0].endswith("/aggregates")
        and (upstream.status, roost.status) == (415, 404)
    )


def _type_that_begins_with_all(operation: Operation, upstream: Answer, roost: Answer) -> bool:
    asked = parse_qsl(urlsplit(operation.url).query)
    return (upstream.status, roost.status) == (200, 400) and any(
        name == "consumer_type" and value.startswith("all") and value != "all" for name, value in asked
    )


KNOWN: dict[str, Case] = {
    "An unknown trait or class is refused even where nothing would be found": _unknown_name,
    "`Accept: application/json; charset=utf-8` is a 406": _accepts_charset,
    "`consumer_type=allX`": _type_that_begins_with_all,
    "PUT of aggregates at 1.0, which has none, is a 415": _media_type_of_nothing,
    "A group without resources that only forbids a trait, or only has `in_tree`, finds nothing": _bare_group,
}
"""The words in docs/differences.md, and the function that recognises the difference."""


def _tightened_units(operation: Operation, upstream: Answer, roost: Answer) -> bool:
    writes = (("PUT", "/allocations/"), ("POST", "/allocations"), ("POST", "/reshaper"))
    return (
        any(operation.method == method and operation.url.startswith(url) for method, url in writes)
        and (upstream.status, roost.status) == (409, 204)
        and b"would violate inventory constraints" in upstream.body
    )


PARTING: dict[str, Case] = {
    "After `min_unit`, `max_unit` or `step_size` of an inventory was tightened": _tightened_units,
}
"""As `KNOWN`, for differences after which the two services hold different things."""


def parts(operation: Operation, upstream: Answer, roost: Answer) -> bool:
    """Return whether a difference is an intended one, after which nothing can be compared any more."""
    return any(case(operation, upstream, roost) for case in PARTING.values())


def known(operation: Operation, upstream: Answer, roost: Answer) -> bool:
    """Return whether a difference is an intended one."""
    return any(case(operation, upstream, roost) for case in KNOWN.values())
