"""``noauth2``, for development: every token is believed."""

from collections.abc import Mapping

from roost.auth.identity import Identity, read_identity


class NoAuth:
    """The token is ``user[:project]``; without a project the user's name is the project's too.

    X-Roles gives the roles; without it the user ``admin`` has the role admin, others none. The other
    headers that Keystone's middleware would set are believed as they are sent.
    """

    challenge = None

    async def identify(
        self, headers: Mapping[str, str], method: str = "GET", path: str = "/"
    ) -> Identity | None:
        token = headers.get("x-auth-token")
        if token is None:
            return None
        user, _, project = token.partition(":")
        said = {"x-roles": "admin" if user == "admin" else "", **headers, "x-user-id": user}
        if not said.get("openstack-system-scope"):
            said["x-tenant-id"] = project or user
        return read_identity(said)
