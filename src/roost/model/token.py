"""What is kept of a token of a host or of a service."""

import hashlib


def token_digest(token: str) -> str:
    """What is kept of a token: 64 hexadecimal digits of SHA-256. Without salt: no two tokens are alike."""
    return hashlib.sha256(token.encode()).hexdigest()
