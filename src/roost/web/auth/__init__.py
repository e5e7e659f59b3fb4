"""Authentication of requests, decisions by policy rules, and the tokens of this process.

    source                where options come from: files, environment variables, the command line
    identity              the user, project and roles of a request
    authenticator         the interface that finds the identity of a request, and its errors
    noauth                the authenticator for development: it believes every token
    keystone              the authenticator for Keystone's tokens; it never blocks the event loop
    token_check           the blocking part of it, by keystonemiddleware
    token_file            the authenticator for service tokens, in a cloud without Keystone
    service_tokens        their file: how it is read and changed
    rules                 decisions about an identity, by oslo.policy
    credentials           the interface to the tokens of this process, for its requests to other services
    keystone_credentials  such tokens by keystoneauth1
    calling               requests to another service with such a token

For each request a service asks its `Authenticator` for the identity once, and `Rules` whether the identity
may act. Nothing else in Roost decides about access.
"""

from roost.web.auth.authenticator import Authenticator, AuthError, IdentityUnavailable
from roost.web.auth.identity import NOBODY, Identity
from roost.web.auth.noauth import NoAuth
from roost.web.auth.source import Source

__all__ = [
    "NOBODY",
    "AuthError",
    "Authenticator",
    "Identity",
    "IdentityUnavailable",
    "NoAuth",
    "Source",
]
