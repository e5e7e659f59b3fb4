"""Messages of wrong bodies and codes of errors, in words of the service that answers."""

from typing import Annotated, Any, Literal

import msgspec
import pytest

from roost.conductor import http as conductor
from roost.placement.v1.app import OPERATIONS as V1
from roost.scheduler.api.operations import OPERATIONS as SCHEDULING
from roost.web import errors
from roost.web.conventions import Conventions
from roost.web.errors import BadRequest, HTTPError
from roost.web.operation import OPEN, Operation
from roost.web.validation_messages import EMPTY, patterns_of


class _Named(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(pattern="^[a-z']$", description="one small letter")]
    others: list[Annotated[str, msgspec.Meta(pattern=r"^[^\x00]*\Z")]] = []
    size: Literal["big", "small"] | None = None
    properties: dict[str, str] = {}


async def _nothing(*_: Any) -> None: ...


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", EMPTY),
        (b" \n", EMPTY),
        (b'{"name"', "The body is no JSON: it ends before its value does."),
        (b"{]", "The body is no JSON: JSON is malformed"),
        (b'{"name": "%"}', "name: one small letter"),
        (b'{"name": "a", "others": ["\\u0000"]}', "others[0]: text without NUL"),
        (b'{"name": "a", "size": "smal"}', "size: 'smal' is none of 'big', 'small'"),
        (b'{"name": 5}', "name: 5 is a number, not a text"),
    ],
)
def test_a_wrong_body_is_told_in_words(body: bytes, says: str) -> None:
    operation = Operation("POST", "/", OPEN, _nothing, body=_Named)
    with pytest.raises(BadRequest) as refused:
        operation.decode(body, _Named)
    assert str(refused.value).startswith(says)


@pytest.mark.parametrize(
    "operations", [conductor.OPERATIONS, SCHEDULING, V1], ids=["conductor", "scheduler", "v1"]
)
def test_every_pattern_of_a_body_and_of_a_query_has_words(operations: tuple[Operation, ...]) -> None:
    for operation in operations:
        for form in (operation.body, getattr(operation.query, "form", None)):
            if form is not None:
                without = [pattern for pattern, words in patterns_of(form) if words is None]
                assert without == [], f"{operation.method} {operation.path}"


def test_errors_of_a_service_have_its_codes_and_placement_keeps_upstreams() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, HTTPError)]
    codes = {Conventions("conductor").code_of(kind()) for kind in kinds if kind.code == HTTPError.code}
    assert {"conductor.bad_request", "conductor.not_found", "conductor.too_large", "conductor.fault"} <= codes
    assert not any("undefined" in code for code in codes)
    assert Conventions().code_of(BadRequest()) == "placement.undefined_code"

    class Own(BadRequest):
        code = "conductor.own"

    class Kind(BadRequest):
        """One without a code of its own."""

    assert Conventions("scheduler").code_of(Own()) == "conductor.own"
    assert Conventions("scheduler").code_of(Kind()) == "scheduler.bad_request"
