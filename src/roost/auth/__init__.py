"""Authentication and authorisation: the identity behind a request, what it may do, and our own tokens.

    source                where options come from: files, the environment, the command line
    identity              the identity behind a request
    authenticator         the interface of finding it by a request's headers
    noauth                an authenticator that believes every token, for development
    keystone, token_check an authenticator by Keystone; token_check is the part that blocks
    rules                 what an identity may do, by oslo.policy
    credentials           tokens of this process for its requests to other services: the interface
    keystone_credentials  such tokens by keystoneauth1

An authenticator finds the identity, once for each request; `Rules` decide what it may do.
"""

from roost.auth.authenticator import Authenticator
from roost.auth.errors import AuthError, IdentityUnavailable
from roost.auth.identity import NOBODY, Identity
from roost.auth.noauth import NoAuth
from roost.auth.source import Source

__all__ = [
    "NOBODY",
    "AuthError",
    "Authenticator",
    "Identity",
    "IdentityUnavailable",
    "NoAuth",
    "Source",
]
