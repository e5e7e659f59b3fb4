"""From bodies to values, and the words for what is wrong with a body."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.placement.errors import BadRequest
from roost.placement.http import bodies
from roost.placement.http.body_decoder import LARGEST_EXPLAINED, convert, decode
from roost.placement.http.operations import OPERATIONS
from roost.placement.wire.json_schema import describe_error, schema_of

FORMS = [
    form
    for operation in OPERATIONS
    for form in {operation.bodies.at(version): None for version in range(40)}
    if form is not None
]

UUID = "5c1d8e6a-0000-4000-8000-000000000001"
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
        (bodies.NewProvider, b'{"name": "a", "uuid": "%s"}' % (b"a-" * 30), f"'{'a-' * 30}' is not a 'uuid'"),
        (bodies.NewProviderInTree, b'{"name": "a", "parent_provider_uuid": "x"}', "'x' is not a 'uuid'"),
        (
            bodies.UniqueUuids,
            f'["{UUID}", "{UUID}"]'.encode(),
            f"['{UUID}', '{UUID}'] has non-unique elements",
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
        assert describe_error(schema_of(form), value) is None


def test_a_whole_number_is_an_integer() -> None:
    raw = b'{"resource_provider_generation": 1.0, "total": 2e0}'
    assert decode(raw, bodies.OneInventory) == bodies.OneInventory(resource_provider_generation=1, total=2)


def test_a_value_that_only_the_type_refuses_is_refused_in_a_sentence() -> None:
    """``$`` in the pattern of a JSON schema lets a newline pass."""
    with pytest.raises(BadRequest, match="JSON does not validate: Expected `str` matching regex"):
        convert({"name": "CUSTOM_GPU\n"}, bodies.NewClass)


MANY = LARGEST_EXPLAINED // 12
HOSTILE = {
    "an object for a text": b'{"name": {%s}}' % b",".join(b'"%d": %d' % (n, n) for n in range(MANY // 2)),
    "many unknown names": b"{%s}" % b",".join(b'"x%d": 1' % n for n in range(MANY)),
    "many wrong items": b"[%s]" % b",".join(b"1" for n in range(MANY)),
    "items that cannot be sorted": b"[%s]" % b",".join(b'%d,"%d"' % (n, n) for n in range(MANY // 2)),
    "a long text": b'{"name": "%s"}' % (b"x" * (LARGEST_EXPLAINED - 100)),
    "a number out of range": b'{"total": 1e999999999}',
    "deep": b'{"name": %s1%s}' % (b"[" * 900, b"]" * 900),
    "too large to be explained": b'{"name": "%s"}' % (b"x" * LARGEST_EXPLAINED),
    "much too large": b"[%s1]" % (b'["x"],' * 30_000),
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=list(HOSTILE))
def test_a_hostile_body_is_refused_in_a_short_text(raw: bytes) -> None:
    for form in FORMS:
        with pytest.raises(BadRequest) as refused:
            decode(raw, form)
        assert len(str(refused.value)) < 1_000
