"""Faults of HTTP clients in words that say what to do."""

import pytest

from roost.model.text import fault_of


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("illegal request line", "this port speaks TLS: use https"),
        ("illegal status line: bytearray(b'\\x15\\x03\\x03')", "this port speaks TLS: use https"),
        (
            "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)",
            "this port speaks no TLS: use http",
        ),
        ("[SSL] record layer failure (_ssl.c:1016)", "this port speaks no TLS: use http"),
        ("[Errno 111]\nConnection refused", "Connection refused"),
        ("", "ValueError"),
    ],
)
def test_a_fault_says_what_to_do(text: str, says: str) -> None:
    assert fault_of(ValueError(text)) == says
