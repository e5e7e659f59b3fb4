"""The words for what is wrong with a body or a query."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.placement.errors import BadRequest
from roost.placement.http import bodies
from roost.placement.http.complaints import complaint
from roost.placement.http.decoding import decode
from roost.placement.http.operations import OPERATIONS

FORMS = [
    form
    for methods in OPERATIONS.values()
    for operation in methods.values()
    for form in {operation.body.at(version): None for version in range(40)}
    if form is not None
]

KEYS = ["name", "uuid", "allocations", "inventories", "total", "traits", "x"]
Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("form", "raw", "words"),
    [
        (bodies.NewClass, b"[]", "[] is not of type 'object'"),
        (bodies.NewClass, b"{}", "'name' is a required property"),
        (bodies.NewClass, b'{"name": "GPU"}', "'GPU' does not match '^CUSTOM_[A-Z0-9_]+$'"),
        (bodies.NewProvider, b'{"name": 1}', "1 is not of type 'string'"),
        (bodies.NewProvider, b'{"name": ""}', "'' should be non-empty"),
        (bodies.NewProvider, b'{"name": "a", "uuid": "x"}', "'x' is not a 'uuid'"),
        (
            bodies.NewProvider,
            b'{"name": "a", "x": 1, "y": 2}',
            "Additional properties are not allowed ('x', 'y' were unexpected)",
        ),
        (
            bodies.OneInventory,
            b'{"resource_provider_generation": 0, "total": 0}',
            "0 is less than the minimum of 1",
        ),
        (bodies.Traits, b'{"traits": "x", "resource_provider_generation": 0}', "'x' is not of type 'array'"),
        (bodies.Several[bodies.ConsumerAllocations], b"{}", "{} should be non-empty"),
        (bodies.Several[bodies.ConsumerAllocations], b'{"x": 1}', "'x' does not match any of the regexes"),
    ],
)
def test_a_fault_is_worded_as_json_schema_validators_do(form: object, raw: bytes, words: str) -> None:
    with pytest.raises(BadRequest) as refused:
        decode(raw, form)
    assert str(refused.value).startswith(f"JSON does not validate: {words}")


def test_the_fault_nearest_to_the_top_is_told() -> None:
    raw = b'{"inventories": {"VCPU": {"total": 0}}}'
    with pytest.raises(BadRequest, match="'resource_provider_generation' is a required property"):
        decode(raw, bodies.AllInventories)


def test_syntax_counts_before_form() -> None:
    with pytest.raises(BadRequest, match="Malformed JSON"):
        decode(b'{"foo": }', bodies.NewClass)


@settings(max_examples=50)
@given(value=Json)
def test_every_fault_is_a_bad_request(value: object) -> None:
    raw = msgspec.json.encode(value)
    for form in FORMS:
        try:
            decode(raw, form)
        except BadRequest:
            continue
        # What is accepted gives no reason to complain.
        assert complaint(msgspec.json.schema(form), value) is None
