"""``/v1/openapi.json``: the document that describes ``/v1`` to clients."""

import copy
from collections.abc import Mapping
from importlib import resources
from typing import Any

import falcon
import msgspec

from roost.placement.http.request import Request, Response


def read_document(package: str = __package__, name: str = "openapi.json") -> dict[str, Any]:
    """A document kept as data in a package."""
    document: dict[str, Any] = msgspec.json.decode(resources.files(package).joinpath(name).read_bytes())
    return document


def with_more(document: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """A document with the paths and components of another one."""
    merged = copy.deepcopy(dict(document))
    merged["paths"].update(more["paths"])
    for kind, components in more["components"].items():
        merged["components"].setdefault(kind, {}).update(components)
    return merged


class Document:
    """/v1/openapi.json; anybody may read it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._text = msgspec.json.encode(document)

    async def on_get(self, req: Request, resp: Response) -> None:
        resp.content_type = falcon.MEDIA_JSON
        resp.data = self._text
