"""Who asks: the authenticator for each value of ``[api] auth_strategy``, and its answer for a request."""

import falcon

from roost.auth import Authenticator, IdentityUnavailable, NoAuth, Source
from roost.placement.http.request import RETRY_SECONDS, Request, Response
from roost.placement.options import PlacementOptions
from roost.web.errors import Unauthorised

__all__ = ["Authenticator", "NoAuth", "identify", "open_authenticator"]


def open_authenticator(options: PlacementOptions) -> Authenticator:
    """The authenticator that the options name. Raises `OperatorError` for options that cannot work."""
    if options.auth_strategy == "noauth2":
        return NoAuth()
    # Imported only here: it takes as long as all the rest.
    from roost.auth.keystone import Keystone

    return Keystone(options.source or Source())


async def identify(authenticator: Authenticator, req: Request, resp: Response) -> None:
    """Find out who asks, as ``req.identity``. Raises `Unauthorised`, with a header for it in ``resp``."""
    try:
        identity = await authenticator.identify(req.headers, req.method, req.root_path + req.path)
    except IdentityUnavailable:
        resp.set_header("retry-after", str(RETRY_SECONDS))
        text = "The identity service cannot validate tokens now; try again."
        raise falcon.HTTPServiceUnavailable(description=text) from None
    if identity is None:
        if authenticator.challenge is not None:
            resp.set_header("www-authenticate", authenticator.challenge)
        raise Unauthorised("X-Auth-Token is missing or not valid.")
    req.identity = identity
