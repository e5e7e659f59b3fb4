"""Errors of finding out who asks.

AuthError
└── IdentityUnavailable  who issues tokens cannot be asked now
"""


class AuthError(Exception):
    """It cannot be found out who asks."""


class IdentityUnavailable(AuthError):
    """The identity service cannot be asked: it is down, slow, or does not accept this service."""
