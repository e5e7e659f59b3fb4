"""Forms of pages: their fields in queries, and in the bodies of operations."""

from typing import Any
from urllib.parse import parse_qsl

import msgspec

from roost.web.errors import BadRequest
from roost.web.operation import Operation
from roost.web.query import Parameters, Query

LARGEST_FORM = 16 * 1024
"""Bytes of a form at most. A larger one is refused with 413."""


class FormQuery(Query):
    """The query of a page. A form sends its empty fields too: an empty parameter is one that is not given."""

    def convert(self, found: Parameters) -> Any:
        return super().convert({name: texts for name, texts in found.items() if texts != [""]})


class FormOperation(Operation):
    """An operation whose body is a form of a page."""

    def decode(self, raw: bytes, form: Any) -> Any:
        try:
            return msgspec.convert(dict(parse_qsl(raw.decode(), keep_blank_values=True)), form, strict=False)
        except ValueError as error:
            # The message has no value: it may be a password.
            raise BadRequest("The form is malformed.") from error
