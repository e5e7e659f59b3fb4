"""Hides everything that looks like a secret in texts of users and drivers.

A value is hidden if its key looks like the name of a secret. In other values, three parts are hidden: the
user part of a URL, everything after an assignment such as ``password=``, and, if the value is JSON, the
values of keys that look like names of secrets. In doubt a text is hidden: a missing word in a record is a
smaller harm than a leaked password.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

import msgspec

HIDDEN = "***"

NAME_WORDS = 3
"""Words before an assignment that are taken as its name, as in ``my api key = …``."""

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# The end of a word decides: `authtoken` and `oauth` are secret, `author` and `tokenizer` are not.
_SECRET_WORD = re.compile(
    r"pass|jwt|bearer|creds?|\w*(?:password|passwd|passphrase|credential)\w*"
    r"|\w*(?:pwd|secret|token|auth|authentication|authorization|userdata"
    r"|(?:api|private|access|secret|encryption|signing|session|master|shared)key)s?"
)
_UNPARSED = re.compile(r"[^\s'\"(]*:.*@")
_MISSPELT = re.compile(r"[('\"]*[A-Za-z][\w+.-]*:[^?]*\?.*=")
_PARAMETER = re.compile(r"([&;])")
_CLOSING = re.compile(r"[\"'),.:;]+$")
_HOST = re.compile(r"(?:\[[\w.:%]*\]|[^:]*)(?::[0-9]*)?[\"'),.:;]*")
_ASSIGNS = re.compile(r"=|:\s")
_SPACE = re.compile(r"(\s+)")
_encode = msgspec.json.Encoder(order="deterministic").encode


PLAIN_QUERY = frozenset(
    (
        "application_name", "charset", "client_encoding", "connect_timeout", "gssencmode", "hostaddr",
        "immutable", "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "mode",
        "no_tty", "no_verify", "pkipath", "port", "read_timeout", "requirepeer", "socket", "sslcert",
        "sslcrl", "sslmode", "sslrootcert", "ssl_ca", "ssl_cert", "ssl_verify_cert", "ssl_verify_identity",
        "target_session_attrs", "tcp_user_timeout", "timeout", "unix_socket", "uri", "write_timeout",
    )
)  # fmt: skip
"""Parameters of the URLs of databases and of libvirt whose values are shown, spelt exactly so."""


_PLACEHOLDERS = re.compile(r"[A-Z+]+://USER:PASSWORD@HOST:PORT/NAME,?")
"""A template of a URL, as messages with advice show it."""


def safe_url(url: str) -> str:
    """Return a URL, which may be misspelt, with everything hidden that may be a secret.

    Hidden are the user and the password, a port that is no number, and the values of the query. In the query
    of HTTP a value is shown unless its name looks like that of a secret; in others only the values of
    `PLAIN_QUERY` are.
    """
    scheme, separator, rest = url.partition("://")
    address, mark, query = rest.partition("?")
    if not separator:
        # Not known to be an address: even in a query only the values of `PLAIN_QUERY` are shown.
        address, mark, query = url.partition("?")
        if "@" in query:
            return HIDDEN
        return _UNPARSED.sub(f"{HIDDEN}@", address) + mark + _safe_query(query, PLAIN_QUERY.__contains__)
    if "@" in query:
        # A password with a question mark or an at sign: its end is not known.
        return f"{scheme}://{HIDDEN}"
    is_file = scheme.endswith(("sqlite", "sqlite+pysqlite")) and address.startswith("/")
    _, at, address = ("", "", address) if is_file else address.rpartition("@")
    host, slash, path = address.partition("/")
    if not _HOST.fullmatch(host):
        host = HIDDEN
    is_http = scheme.lower().endswith(("http", "https"))
    shows = _is_no_secret if is_http else PLAIN_QUERY.__contains__
    return f"{scheme}://{at and HIDDEN}{at}{host}{slash}{path}{mark}{_safe_query(query, shows)}"


def safe_message(text: str) -> str:
    """Return a message of a program with the secrets hidden in the URLs that it names."""
    if "://" not in text and "@" not in text and "?" not in text:
        return text
    return "".join(map(_safe_word, _SPACE.split(text)))


def _safe_word(word: str) -> str:
    if _PLACEHOLDERS.fullmatch(word):
        return word
    return safe_url(word) if "://" in word or "@" in word or _MISSPELT.match(word) else word


def _safe_query(query: str, shows: Callable[[str], bool]) -> str:
    """Return the query of a URL with all values hidden except those of names for which ``shows`` is true."""
    parts = _PARAMETER.split(query)
    for place in range(0, len(parts), 2):
        name, equals, _ = parts[place].partition("=")
        if parts[place] and not (equals and shows(name)):
            end = _CLOSING.search(parts[place])
            parts[place] = f"{name}={HIDDEN}" if equals else HIDDEN
            parts[place] += end[0] if end else ""
    return "".join(parts)


def _is_no_secret(name: str) -> bool:
    return not is_secret_key(name)


def redacted_text(text: str) -> str:
    """Return a text from outside with everything hidden that looks like a secret."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            safe = _encode(_safe_json(msgspec.json.decode(text))).decode()
        except msgspec.DecodeError:
            pass
        except RecursionError:
            return HIDDEN
        else:
            # Decoding drops repeated keys, so that the text is safe only if it is the same again.
            return text if _SPACE.sub("", text) == _SPACE.sub("", safe) else safe
    if "://" in text:
        text = "".join(map(_safe_url, _SPACE.split(text)))
    return _safe_assignments(text)


def is_secret(key: str) -> bool:
    """Return whether a key looks like the name of a secret: ``adminPass``, ``x-api-key``, ``user_data``."""
    spelt = _WORD.findall(key)
    words = [word.lower().strip("0123456789") for word in spelt]
    parts = [part.lower() for word in spelt for part in _CAMEL.findall(word)]
    joined = [first + second for names in (words, parts) for first, second in pairwise(names)]
    return any(_SECRET_WORD.fullmatch(word) for word in (*words, *parts, *joined))


is_secret_key = lru_cache(4096)(is_secret)
"""`is_secret` with a cache, for keys that repeat."""


def _safe_json(value: object) -> object:
    if isinstance(value, str):
        return redacted_text(value)
    if isinstance(value, list):
        return [_safe_json(item) for item in value]
    if isinstance(value, dict):
        return {key: HIDDEN if is_secret(key) else _safe_json(item) for key, item in value.items()}
    return value


def _safe_url(word: str) -> str:
    """Hide the text between ``://`` and the last ``@``: a password may contain any character but a space."""
    scheme, separator, rest = word.partition("://")
    return f"{scheme}://{HIDDEN}@{rest.rpartition('@')[2]}" if separator and "@" in rest else word


def _safe_assignments(text: str) -> str:
    """Hide everything after the first assignment to the name of a secret.

    The end of the assigned value depends on the program that reads it.
    """
    start = 0
    for assigns in _ASSIGNS.finditer(text):
        if is_secret(" ".join(text[start : assigns.start()].split()[-NAME_WORDS:])):
            return text[: assigns.end()] + HIDDEN
        start = assigns.end()
    return text
