"""Who asks, and what they may do.

    source         where options come from: files, the environment, the command line
    identity       who a request is from
    authenticator  from a request's headers to an identity: the interface
    noauth         every token is believed
    keystone       tokens of Keystone; token_check is the part that blocks, by keystonemiddleware
    rules          what an identity may do, by oslo.policy

An authenticator finds out who asks, once for each request; `Rules` say yes or no, the only place that does.
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
