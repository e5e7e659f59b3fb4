"""Names that are given look like no other name."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.model.names import is_identifier, look_alike, look_of, lookalike

REFUSED = {
    "zero width": "host\u200b1",
    "joiner": "host\u200d1",
    "soft hyphen": "ho\u00adst",
    "right to left": "host\u202e1",
    "tag": "host\U000e0061",
    "variation selector": "host\ufe0f",
    "grapheme joiner": "ho\u034fst",
    "hangul filler": "host\u3164",
    "byte order mark": "\ufeffhost",
    "no-break space": "host\u00a01",
    "space at the end": "host ",
    "space at the beginning": " host",
    "tab": "ho\tst",
    "line": "host\n",
    "escape": "host\x1b[31m",
    "nul": "ho\x00st",
    "decomposed": "ho\u0302te",
    "fullwidth": "\uff48ost",
    "ligature": "o\ufb03ce",
    "cyrillic o": "h\u043est",
    "greek o": "h\u03bfst",
    "cyrillic alone": "\u0441\u043e\u0440\u0435",
    "greek alone": "\u0391\u0392\u0395",
    "cherokee": "\u13aa\u13b3",
    "alpha of phonetics": "h\u0251st",
    "dotless i": "n\u0131ne",
    "dental click": "host\u01c0",
    "latin iota": "\u0196inux",
    "small capital": "ho\ua731t",
    "saltillo": "ho\ua78cst",
    "palochka alone": "\u04c0\u04c0",
    "greek alpha and rho": "\u03b1\u03c1",
    "armenian alone": "\u057d\u0578",
    "hyphen": "a\u2010b",
    "minus": "a\u2212b",
    "dash": "a\u2013b",
    "one dot leader": "a\u2024b",
    "digits of another script": "host\u0661",
    "surrogate": "ho\ud800st",
    "private use": "ho\ue000st",
}


@pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED.keys())
def test_a_look_alike_is_neither_an_identifier_nor_a_name(name: str) -> None:
    assert not is_identifier(name)
    assert lookalike(name) is not None


@pytest.mark.parametrize(
    "name",
    [
        "gold",
        "rack 7",
        "Zürich",
        "Gruppe (Süd)",
        "москва",
        "東京の棚",
        "서울 rack"[:2],
        "ελληνικά",
        "a:b",
        "Việt Nam",
        "łódź",
        "Straße",
        "երկաթ",
    ],
)
def test_a_name_of_one_script_may_be_given(name: str) -> None:
    assert lookalike(name) is None


@pytest.mark.parametrize(
    "name", ["compute-0007.example.org", "6f0d2a3e-6f57-4c3b-9d0a-7a1f6b5c2e11", "_x", "a" * 255]
)
def test_a_name_of_a_host_is_an_identifier(name: str) -> None:
    assert is_identifier(name)
    assert lookalike(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "-x", "a/b", "a b", "a:b", "a" * 256, "hôte", "a?b", "a%b"])
def test_a_name_of_paths_or_options_is_no_identifier(name: str) -> None:
    assert not is_identifier(name)


ALIKE = [
    ("host", "HOST"),
    ("h1", "hl"),
    ("h1", "hI"),
    ("hl", "hI"),
    ("rack0", "rackO"),
    ("hI", "hi"),
    ("No1", "Nol"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_names_that_many_fonts_draw_alike_look_alike(one: str, other: str) -> None:
    assert look_alike(one, other) and look_alike(other, one)
    assert look_of(one) == look_of(other)


@pytest.mark.parametrize(
    ("one", "other"), [("h", "h"), ("h1", "h2"), ("hi", "hl"), ("ho", "h0"), ("rn", "m"), ("a-b", "a.b")]
)
def test_other_names_do_not(one: str, other: str) -> None:
    assert not look_alike(one, other)


@given(st.text("hH0Oo1lLIi-", max_size=4), st.text("hH0Oo1lLIi-", max_size=4))
def test_names_that_look_alike_have_one_look(one: str, other: str) -> None:
    assert look_of(one) == look_of(other) or not look_alike(one, other)


@given(st.text(max_size=8))
def test_no_two_names_that_may_be_given_are_one_when_they_are_normalised(name: str) -> None:
    if lookalike(name) is None:
        assert unicodedata.normalize("NFKC", name) == name
        assert all(unicodedata.category(each)[0] not in "C" for each in name)
