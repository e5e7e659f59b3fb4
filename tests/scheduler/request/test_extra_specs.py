"""The operators of extra specs, case by case."""

import pytest

from roost.scheduler.request.extra_specs import matches

CASES = [
    # Without an operator the texts are equal.
    ("yes", "yes", True),
    ("yes", "no", False),
    ("10", "10.0", False),
    ("two words", "two words", True),
    ("", "", True),
    ("x", "", False),
    # Numbers: = is "at least", as in Nova.
    ("12", "= 10", True),
    ("10", "= 10", True),
    ("9", "= 10", False),
    ("9", ">= 10", False),
    ("10.0", "== 10", True),
    ("10", "!= 10", False),
    ("11", "!= 10", True),
    ("10", "<= 10", True),
    ("11", "<= 10", False),
    ("many", "= 10", False),
    ("10", "= many", False),
    # Texts, in the order of their characters.
    ("10", "s== 10", True),
    ("10.0", "s== 10", False),
    ("a", "s!= b", True),
    ("2", "s< 10", False),
    ("10", "s< 2", True),
    ("b", "s<= b", True),
    ("b", "s> a", True),
    ("b", "s>= c", False),
    # Parts.
    ("abc", "<in> b", True),
    ("abc", "<in> d", False),
    ("abc def", "<all-in> abc def", True),
    ("abc", "<all-in> abc def", False),
    ("b", "<or> a <or> b", True),
    ("c", "<or> a <or> b", False),
    ("ab", "<or> a <or> b", False),
    # Every second word after <or> is one more <or>, whatever it says.
    ("b", "<or> a b", False),
    ("c", "<or> a b c", True),
    ("<or>", "<or> <or> a", True),
    # An operator with nothing behind it matches nothing.
    ("=", "=", False),
    ("<in>", "<in>", False),
    ("anything", "<all-in>", False),
    ("<or>", "<or>", False),
    ("s==", "s==", False),
]


@pytest.mark.parametrize(("value", "wanted", "expected"), CASES)
def test_operator(value: str, wanted: str, expected: bool) -> None:
    assert matches(value, wanted) is expected
