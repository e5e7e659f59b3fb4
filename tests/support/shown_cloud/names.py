"""Hostile names, as tenants and operators might give them to what they may name."""

from typing import Final

SCRIPT: Final = "<script>alert(1)</script>"
IMAGE: Final = '"><img src=x onerror=alert(1)>'
BIDI: Final = "\u202egnp.exe\u2066 host\u2067"
LONG: Final = "a-name-without-any-space-" * 9
WORDS: Final = "A reason that somebody wrote at length, because it had to be said. " * 4
EMOJI: Final = "\U0001f469\u200d\U0001f4bb\U0001f3f4\u200d\u2620\ufe0f"
LINES: Final = "one\ntwo\r\n\tthree"

HOSTILE: Final = (SCRIPT, IMAGE, BIDI, LONG, EMOJI, LINES)
