"""The check that messages of an agent to its endpoint are encrypted."""

import ipaddress
from urllib.parse import urlsplit

CHANGE = "serve the endpoint with --tls-cert, and write https:// in --endpoint"
"""The advice for an operator."""


def exposure_of(endpoint: str) -> str | None:
    """Return why others can read what is sent to the URL of an endpoint; None if they cannot."""
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
