"""Compares two answers: their status, the headers that clients use, and their bodies in any order."""

import json
from typing import Any
from urllib.parse import urlsplit

from support.wsgi import Answer

_SAME = ("openstack-api-version", "vary", "cache-control", "allow")
_WITHOUT_VARY = (403, 404)
"""Upstream gives some of these answers without the header."""


def difference(upstream: Answer, roost: Answer) -> str | None:
    """Return the differences of the answers to one request, or None if there are none."""
    one, other = _comparable(upstream), _comparable(roost)
    if upstream.status in _WITHOUT_VARY:
        one.setdefault("vary", other.get("vary"))
    # Upstream omits the header if the answer has nothing that was ever modified.
    one["last-modified"] |= other["last-modified"]
    faults = [
        f"{name}: {_shown(one.get(name))}, but Roost {_shown(other.get(name))}"
        for name in {**one, **other}
        if one.get(name) != other.get(name)
    ]
    return "; ".join(faults) or None


def limited(upstream: Answer, roost: Answer, limit: int) -> str | None:
    """Return the differences if only Roost was given a limit: its candidates may be any of upstream's."""
    if upstream.status != 200 or roost.status != 200:
        return difference(upstream, roost)
    everything, some = upstream.json, roost.json
    known = {_text(request) for request in everything["allocation_requests"]}
    chosen = [_text(request) for request in some["allocation_requests"]]
    if len(chosen) != min(limit, len(everything["allocation_requests"])):
        return f"{len(chosen)} of {len(everything['allocation_requests'])} candidates under limit={limit}"
    if not known.issuperset(chosen) or len(set(chosen)) < len(chosen):
        return f"candidates that upstream has not: {sorted(set(chosen) - known)}"
    for provider, summary in some["provider_summaries"].items():
        if _text(summary) != _text(everything["provider_summaries"].get(provider)):
            return f"summary of {provider}"
    return None


def _comparable(answer: Answer) -> dict[str, Any]:
    location = answer.headers.get("location")
    content_type = answer.headers.get("content-type", "").partition(";")[0] if answer.body else ""
    return {
        "status": answer.status,
        "location": urlsplit(location).path if location else None,
        "last-modified": "last-modified" in answer.headers,
        "content type": content_type,
        **{name: _listed(answer.headers[name]) for name in _SAME if name in answer.headers},
        "body": _sorted(_without_texts(answer)) if content_type == "application/json" else bool(answer.body),
    }


def _without_texts(answer: Answer) -> Any:
    """Return the body. The texts of errors differ and are replaced by whether they are there."""
    body = answer.json
    if answer.status < 400:
        return body
    for error in body.get("errors", ()):
        error["detail"] = bool(error["detail"])
        error["request_id"] = bool(error["request_id"])
    return body


def _listed(header: str) -> list[str]:
    return sorted(part.strip().lower() for part in header.split(","))


def _sorted(value: Any) -> Any:
    """Return a value with sorted lists: no list of this API has a meaningful order."""
    if isinstance(value, dict):
        return {name: _sorted(each) for name, each in value.items()}
    if isinstance(value, list):
        return sorted((_sorted(each) for each in value), key=_text)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: Any) -> str:
    return json.dumps(_sorted(value) if isinstance(value, dict | list) else value, sort_keys=True)


def _shown(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
