"""Rules for new names, and the uuids of providers that have a name alone.

No name may look like another one or have invisible characters.

Names that identify something (hosts, nodes that agents report, cells) have ASCII letters, digits and few
signs. Names for people (aggregates, zones, server groups) may have the letters of one script. The rules apply
where a name is given; stored names are read as they are.
"""

import re
import unicodedata
import uuid
from functools import lru_cache

IDENTIFIER_RULE = "letters, digits and . _ - @ + = of ASCII, at most 255, the first a letter, a digit or _"

_IDENTIFIER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+=-]{0,254}")

_SEEN_BY_NOBODY = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u3164\uffa0")
"""Letters and marks that are invisible. Source: Unicode's property Default_Ignorable_Code_Point."""

_SCRIPTS = frozenset(
    (
        *("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "HEBREW", "ARABIC", "DEVANAGARI", "BENGALI", "GURMUKHI"),
        *("GUJARATI", "ORIYA", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA", "THAI", "LAO"),
        *("TIBETAN", "MYANMAR", "GEORGIAN", "ETHIOPIC", "KHMER", "CJK"),
    )
)
"""Scripts that names may have. Source: the recommended scripts of Unicode Standard Annex 31, table 5. Others
are not written any more, or have letters that are drawn as those of Latin."""

_WRITTEN_TOGETHER = frozenset(
    ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "IDEOGRAPHIC", "HANGUL", "BOPOMOFO")
)
"""Scripts that count as ``CJK``: Japanese and Korean use Chinese characters beside their own."""

_DRAWN_AS_LATIN = frozenset(
    "АВЕЅІЈКМНОРСТУХҮѴԌԚԜӀаеіјкорсухѕүѵѡԁԛԝһӏгьҽΑΒΕΖΗΙΚΜΝΟΡΤΥΧϳαορνικυχγσՍՏՕԼաօսհոզցյքռ"
)
"""Letters of Cyrillic, Greek and Armenian that are drawn as letters of Latin. A name of such letters alone is
refused. Source: ``confusables.txt`` of Unicode Technical Standard 39."""


_DRAWN_ALIKE = str.maketrans("0OIi1", "oolll")
_ALIKE_AS_THEY_STAND = str.maketrans("0I1", "Oll")


def look_of(name: str) -> str:
    """Return a key that is the same for identifiers that may be taken for each other.

    Some other identifiers share a key as well: `look_alike` decides. ASCII only, as identifiers are.
    """
    return name.translate(_DRAWN_ALIKE).lower()


def look_alike(name: str, other: str) -> bool:
    """Return whether two different names of hosts or nodes may be taken for each other.

    They differ in capitals alone, or in what many fonts draw alike: ``l``, ``1`` and ``I``, ``O`` and ``0``.
    Source: the ASCII part of ``confusables.txt`` of Unicode Technical Standard 39, except m and rn.
    """
    if name == other:
        return False
    same_letters = name.lower() == other.lower()
    return same_letters or name.translate(_ALIKE_AS_THEY_STAND) == other.translate(_ALIKE_AS_THEY_STAND)


def is_identifier(name: str) -> bool:
    """Return whether a name meets the `IDENTIFIER_RULE`."""
    return _IDENTIFIER.fullmatch(name) is not None


def lookalike(name: str) -> str | None:
    """Return why a name may be mistaken for another one, as the rest of a sentence; None if it may not.

    Source: the profiles of Unicode Technical Standard 39, reduced to one script a name.
    """
    if name != name.strip():
        return "begins or ends with a space"
    if "  " in name:
        return "has two spaces beside each other"
    if name.isascii() and name.isprintable():
        return None
    for character in name:
        category = unicodedata.category(character)[0]
        unseen = category in "CZ" and character != " "
        if unseen or character in _SEEN_BY_NOBODY or "\ufe00" <= character <= "\ufe0f":
            return f"has a character that nobody sees: {character!a}"
    normal = unicodedata.normalize("NFKC", name)
    if normal != name:
        return f"has another form that looks like it: {normal!r}"
    scripts: set[str] = set()
    for character in name:
        if character.isascii() and not character.isalpha():
            continue
        script = _script(character)
        if script is None:
            return f"has the sign {character!r}, which is neither of ASCII nor a letter in use"
        scripts.add(script)
    if len(scripts) > 1:
        return f"mixes letters of several scripts: {', '.join(sorted(scripts))}"
    letters = [each for each in name if each.isalpha()]
    if letters and all(each in _DRAWN_AS_LATIN for each in letters):
        return f"has letters of {', '.join(scripts)} alone that look like those of LATIN"
    return None


def _script(character: str) -> str | None:
    """Return the script of a letter, by the first word of its Unicode name; None if no letter in use."""
    if unicodedata.category(character)[0] not in "LM":
        return None
    word = unicodedata.name(character, "").partition(" ")[0]
    if word == "LATIN" and not _is_plain_latin(character):
        return None
    script = "CJK" if word in _WRITTEN_TOGETHER else word
    return script if script in _SCRIPTS else None


def _is_plain_latin(character: str) -> bool:
    """Return whether a Latin letter is one that languages write today.

    Phonetic letters, clicks and obsolete forms are not: they are drawn as other letters or signs of Latin.

    Source: the letters of Latin with Identifier_Type Recommended in Unicode Standard Annex 31, nearly.
    """
    if character == "\u0131":  # i without its dot
        return False
    return character <= "\u017e" or unicodedata.normalize("NFD", character)[0].isascii()


_NAMESPACE = uuid.UUID("6f0d2a3e-6f57-4c3b-9d0a-7a1f6b5c2e11")


@lru_cache(maxsize=10_000)
def provider_uuid(name: str) -> str:
    """Return the uuid of a provider that an agent creates. It depends on the name alone."""
    return str(uuid.uuid5(_NAMESPACE, name))
