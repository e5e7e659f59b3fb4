"""Authentication of requests, decisions by policy rules, and the tokens of this process.

    identity              the user, project and roles of a request
    noauth                the authenticator for development: it believes every token
    keystone              the authenticator for Keystone's tokens; it never blocks the event loop
    token_check           the blocking part of it, by keystonemiddleware
    reachability          a check that Keystone answers, without a token
    token_file            the authenticator for service tokens, in a cloud without Keystone
    service_tokens        reads and changes the file of service tokens
    rules                 decisions about an identity, by oslo.policy
    credentials           the tokens of this process, and its requests to another service with them
    keystone_credentials  such tokens by keystoneauth1
    json_service          another service whose API speaks JSON, such as Neutron

For each request a service asks its `Authenticator` once for the identity, and `PolicyRules` whether the
identity may act. Nothing else in Roost decides about access.
"""

from roost.web.auth.identity import NOBODY, Authenticator, AuthError, Identity, IdentityUnavailable
from roost.web.auth.noauth import NoAuth

__all__ = [
    "NOBODY",
    "AuthError",
    "Authenticator",
    "Identity",
    "IdentityUnavailable",
    "NoAuth",
]
