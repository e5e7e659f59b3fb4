"""Whether what an agent says to its endpoint can be read on the way."""

import ipaddress
from urllib.parse import urlsplit

CHANGE = "serve the endpoint with --tls-cert, and write https:// in --endpoint"
"""What an operator does about it."""


def exposure_of(endpoint: str) -> str | None:
    """What is wrong with the URL of an endpoint that others can read along with; None if they cannot."""
    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    if parts.scheme != "http" or _is_loopback(host):
        return None
    return f"tokens and orders travel to {host} without encryption"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
