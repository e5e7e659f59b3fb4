"""A value of the wrong type or size is named, with its place and with what is meant."""

from functools import partial
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from roost.model.wrong_value import LONGEST_SHOWN, field_names, wrong_value


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    count: Annotated[int, Meta(ge=1, le=9)] = 1
    share: Annotated[float, Meta(gt=0, lt=2)] = 1.0
    name: Annotated[str, Meta(min_length=1, max_length=3)] = "a"
    pair: tuple[int, int] = (1, 2)
    some: Annotated[tuple[int, ...], Meta(max_length=2)] = ()
    amounts: dict[Annotated[str, Meta(max_length=2)], int] = {}
    maybe: int | None = None
    either: int | str | None = None
    is_big: bool = False
    few: Annotated[dict[str, int], Meta(max_length=1)] = {}
    parts: list["_Part"] = []
    password: str = ""


class _Whole(msgspec.Struct):
    part: _Part


WRONG: list[tuple[Any, str]] = [
    ([], "the document is a list, not an object"),
    ({}, "part is missing"),
    ({"part": 1}, "part: 1 is a number, not an object"),
    ({"part": {"count": "5"}}, 'part.count: "5" is a text, not a whole number'),
    ({"part": {"count": 1.5}}, "part.count: 1.5 is not a whole number"),
    ({"part": {"count": True}}, "part.count: true is not a whole number"),
    ({"part": {"count": None}}, "part.count: null is not a whole number"),
    ({"part": {"count": 0}}, "part.count: 0 is too small; the least is 1"),
    ({"part": {"count": 99}}, "part.count: 99 is too large; the most is 9"),
    ({"part": {"share": 0.0}}, "part.share: 0.0 is too small; it must be more than 0"),
    ({"part": {"share": 2.0}}, "part.share: 2.0 is too large; it must be less than 2"),
    ({"part": {"name": ""}}, "part.name is empty; it must have at least 1 character"),
    ({"part": {"name": "abcd"}}, "part.name has 4 characters; it must have at most 3 characters"),
    ({"part": {"name": {}}}, "part.name is an object, not a text"),
    ({"part": {"pair": [1]}}, "part.pair has 1 entry; it must have exactly 2 entries"),
    ({"part": {"some": [1, 2, 3]}}, "part.some has 3 entries; it must have at most 2 entries"),
    ({"part": {"some": [1, "x"]}}, 'part.some[1]: "x" is a text, not a whole number'),
    (
        {"part": {"amounts": {"a": 1, "abc": 1}}},
        "a key of part.amounts has 3 characters; it must",
    ),
    ({"part": {"amounts": {"a": 1, "b": "x"}}}, 'part.amounts.b: "x" is a text, not a whole number'),
    ({"part": {"maybe": "x"}}, 'part.maybe: "x" is a text, not a whole number'),
    ({"part": {"either": []}}, "part.either is a list, not a whole number or a text"),
    ({"part": {"is_big": 1}}, "part.is_big: 1 is a number, not true or false"),
    ({"part": {"few": {"a": 1, "b": 2}}}, "part.few has 2 keys; it must have at most 1 key"),
    ({"part": {"parts": [{"cuont": 1}]}}, "part.parts[0].cuont is unknown: did you mean count?"),
    ({"part": {"colour": 1}}, "part.colour is unknown"),
    ({"part": {"password": 12345}}, "part.password: *** is a number, not a text"),
]


@pytest.mark.parametrize(("document", "says"), WRONG, ids=[says for _, says in WRONG])
def test_a_wrong_value_is_named_with_its_place_and_what_is_meant(document: Any, says: str) -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(document, _Whole)
    told = wrong_value(refused.value, document, root="the document", known=partial(field_names, _Whole))
    assert told.startswith(says)
    assert "`" not in told


@pytest.mark.parametrize(("document", "says"), WRONG, ids=[says for _, says in WRONG])
def test_without_the_document_the_sentence_has_no_name_of_msgspec(document: Any, says: str) -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(document, _Whole)
    assert not {"`", "Expected", "$"} & set(wrong_value(refused.value).split())
    assert "`" not in wrong_value(refused.value)


def test_a_long_value_is_cut() -> None:
    document = {"part": "x" * 1000}
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(document, _Whole)
    assert len(wrong_value(refused.value, document)) < LONGEST_SHOWN + 50


def test_places_begin_with_the_prefix() -> None:
    document = {"count": "x"}
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(document, _Part)
    assert wrong_value(refused.value, document, prefix="parts[2]").startswith('parts[2].count: "x" is a text')
