"""Records contain no secrets, and everything else of a request spec."""

import time
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.model.allocation import GroupPolicy
from roost.model.request import RequestGroup
from roost.model.secrets import HIDDEN, is_secret
from roost.model.spec import Flavor, Image, RequestSpec, ServerGroup
from roost.records import DamagedRecords, redacted, spec_of

SECRET_NAMES = [
    *("password", "passwd", "pwd", "pass", "passphrase", "secret", "token", "auth", "credential", "jwt"),
    *("api key", "private key", "secret key", "access key", "user data", "encryption key", "authorization"),
]
MARK = "hunter2"

harmless = st.sampled_from(["os", "hw", "x", "admin", "vtpm", "distro"])
around = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
secrets = st.builds("{}{}{}".format, around, st.just(MARK), around)


@st.composite
def secret_keys(draw: st.DrawFn) -> str:
    words = [*draw(st.lists(harmless, max_size=2)), *draw(st.sampled_from(SECRET_NAMES)).split()]
    separator = draw(st.sampled_from(["", "-", "_", ".", ":", " "]))
    if not separator:
        return words[0] + "".join(map(str.capitalize, words[1:]))
    words += draw(st.lists(st.sampled_from(["2", "old", "id"]), max_size=1))
    cased = [draw(st.sampled_from([str.lower, str.upper, str.title, str.swapcase]))(word) for word in words]
    return separator.join(cased)


def spec_with(key: str, value: str) -> list[RequestSpec]:
    """A spec with this key and value in each of the places where users write freely."""
    flavor = Flavor("m1.small", 1, 512)
    spec = RequestSpec(project_id="p", user_id="u", flavor=flavor)
    replace = msgspec.structs.replace
    return [
        replace(spec, image=Image(properties={key: value})),
        replace(spec, scheduler_hints={key: (value, "b")}),
        replace(spec, flavor=replace(flavor, extra_specs={key: value})),
    ]


def recorded(key: str, value: str) -> list[str]:
    return [msgspec.json.encode(redacted(spec)).decode() for spec in spec_with(key, value)]


@given(secret_keys(), secrets)
def test_no_value_of_a_secret_key_survives(key, secret):
    for text in recorded(key, secret):
        assert MARK not in text
        assert HIDDEN in text


@given(secret_keys(), secrets, st.integers(0, 3), st.booleans(), st.data())
def test_no_secret_survives_inside_a_value_that_is_json(key, secret, depth, twice, data):
    value: object = {"n": 1, key: data.draw(st.sampled_from([secret, [secret], {"deep": secret}]))}
    for _ in range(depth):
        value = data.draw(
            st.sampled_from([[value], {"in": value}, {"in": msgspec.json.encode(value).decode()}])
        )
    text = msgspec.json.encode(value).decode()
    if twice:
        text = f"{text[:-1]}, {text[1:-1]}" + text[-1]
    for found in recorded("query", data.draw(st.sampled_from(["", " ", "\n"])) + text):
        assert MARK not in found


@given(secret_keys(), secrets, around, st.sampled_from(["=", " = ", ": ", "='", '="']))
def test_no_secret_survives_an_assignment_in_a_text(key, secret, before, assigns):
    for found in recorded("os_command_line", f"{before} {key}{assigns}{secret}"):
        assert MARK not in found


@given(
    st.sampled_from(["https", "mysql+pymysql", "rabbit"]),
    st.sampled_from(["", "user", "user:", "us/er:"]),
    st.text(st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), max_size=6),
    around,
)
def test_no_user_part_of_a_url_survives(scheme, user, part, before):
    for found in recorded("kernel", f"{before}{scheme}://{user}{part}{MARK}{part}@host/path?x y"):
        assert MARK not in found


def test_a_url_keeps_what_is_no_secret():
    safe = redacted(spec_with("mirror", "see https://me:pw@host:80/x?y=1 and http://h/p")[0])
    assert safe["image"]["properties"] == {"mirror": "see https://***@host:80/x?y=1 and http://h/p"}


@pytest.mark.parametrize(
    "key",
    [
        *("author", "tokenizer", "authority", "compass", "bypass", "key_name", "monkey", "os_distro"),
        *("hw:pci_passthrough", "passenger", "keystone", "user", "data", "secretary", "hw_disk_bus", ""),
        *("public_key", "pwdless", "credits", "api_version", "accessible", "hw:numa_nodes"),
    ],
)
def test_what_only_sounds_like_a_secret_is_kept(key):
    assert not is_secret(key)
    assert redacted(spec_with(key, "kept")[1])["scheduler_hints"] == {key: ["kept", "b"]}


@pytest.mark.parametrize(
    "key",
    [
        "adminPass",
        "APIKey",
        "x-api-key",
        "AUTH_TOKEN",
        "authtoken",
        "db_password2",
        "user_data",
        "OAuth2Token",
    ],
)
def test_known_spellings_are_secret(key):
    assert is_secret(key)


def test_what_placement_reads_is_kept_however_it_is_named():
    extra_specs = {"resources:CUSTOM_TOKEN": "2", "trait_A:CUSTOM_SECRET": "required"}
    flavor = Flavor("m1.small", 1, 512, 0, {**extra_specs, "resources:PASSWORD": MARK})
    spec = RequestSpec(
        project_id="p",
        user_id="u",
        flavor=flavor,
        requested_resources=(RequestGroup({"CUSTOM_TOKEN": 1}, "_port", (frozenset({"CUSTOM_AUTH"}),)),),
    )
    safe = redacted(spec)
    assert safe["flavor"]["extra_specs"] == {**extra_specs, "resources:PASSWORD": HIDDEN}
    assert msgspec.convert(safe, RequestSpec).requested_resources == spec.requested_resources


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 900 + "1" + "}" * 900, "[" * 400 + "]" * 400])
def test_a_value_nested_too_deeply_is_no_error(text):
    redacted(spec_with("query", text)[1])


@pytest.mark.parametrize("text", ["://a:" * 30_000, "a" * 100_000, "=" * 100_000, "a=" * 50_000])
def test_a_long_value_takes_no_long_time(text):
    started = time.process_time()
    redacted(spec_with("query", text)[1])
    assert time.process_time() - started < 2


names = st.text("abcXYZ_:-09", max_size=8)
values = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="=:"), max_size=12)
free = st.dictionaries(names, values, max_size=3)
sets = st.frozensets(names, max_size=3)
specs = st.builds(
    RequestSpec,
    project_id=names,
    user_id=names,
    flavor=st.builds(
        Flavor,
        names,
        st.integers(0, 99),
        st.integers(0, 99),
        st.integers(0, 99),
        st.just({"hw:cpu_policy": "dedicated", "q": '[ "=", "$free_ram_mb", 1024 ]'}),
    ),
    availability_zone=st.none() | names,
    group=st.none()
    | st.builds(
        ServerGroup, names, st.sampled_from(get_args(GroupPolicy)), st.lists(names, max_size=3).map(tuple)
    ),
    requested_resources=st.lists(
        st.builds(
            RequestGroup,
            st.dictionaries(names, st.integers(0, 99), max_size=2),
            names,
            st.lists(sets, max_size=2).map(tuple),
            sets,
        ),
        max_size=2,
    ).map(tuple),
    required_traits=sets,
    ignore_hosts=sets,
    image=st.none() | st.builds(Image, names, st.none() | names, free),
    scheduler_hints=st.dictionaries(names, st.lists(values, max_size=2).map(tuple), max_size=3),
)


@given(specs)
def test_a_spec_without_secrets_comes_back_from_either_backend_as_it_was(spec):
    safe = redacted(spec)
    assert msgspec.json.decode(msgspec.json.encode(safe)) == safe
    assert msgspec.convert(safe, RequestSpec) == spec


def test_a_run_gives_back_its_spec(make):
    run = make(1).run
    assert redacted(spec_of(run)) == run.spec
    assert spec_of(run).required_traits == {"CUSTOM_A", "CUSTOM_B"}


def test_a_run_that_holds_no_spec_is_named(make):
    run = msgspec.structs.replace(make(1).run, spec={"project_id": 7})
    with pytest.raises(DamagedRecords, match="run run-1 does not contain a request spec"):
        spec_of(run)
