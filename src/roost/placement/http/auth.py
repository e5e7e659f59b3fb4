"""The authenticator for each value of ``[api] auth_strategy``."""

from roost.auth import Authenticator, NoAuth, Source
from roost.placement.options import PlacementOptions

__all__ = ["Authenticator", "NoAuth", "open_authenticator"]


def open_authenticator(options: PlacementOptions) -> Authenticator:
    """The authenticator that the options name. Raises `OperatorError` for options that cannot work."""
    if options.auth_strategy == "noauth2":
        return NoAuth()
    # Imported only here: it takes as long as all the rest.
    from roost.auth.keystone import Keystone

    return Keystone(options.source or Source())
