"""Tokens of Keystone, by the options of OpenStack's clients."""

from collections.abc import Mapping
from typing import Any

from roost.model.errors import OperatorError

SECONDS = 60.0
"""Seconds that Keystone has for a response."""

NO_TOKEN = "admin"
"""The token for services that do not check tokens."""


def keystone_options(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options in the environment variables OS_AUTH_URL, OS_USERNAME and so on."""
    return {
        name[3:].lower(): value for name, value in environment.items() if name.startswith("OS_") and value
    }


def keystone_token(options: Mapping[str, str]) -> str:
    """Return a token of Keystone for these options.

    Without `auth_url`, or with `token` and no other secret, return the option `token`, else `NO_TOKEN`.
    Raises `OperatorError` if Keystone issues no token.
    """
    secrets = ("auth_type", "password", "application_credential_secret")
    if "auth_url" not in options or ("token" in options and not any(name in options for name in secrets)):
        return options.get("token", NO_TOKEN)
    # Imported only here: the import is slow.
    from keystoneauth1 import exceptions, loading, session

    url = options["auth_url"]
    kind = options.get("auth_type", "password" if "password" in options else "v3applicationcredential")
    try:
        loader: Any = loading.get_plugin_loader(kind)
        known = {option.dest for option in loader.get_options()}
        values = {name: value for name, value in options.items() if name in known}
        plugin = loader.load_from_options(**values)
        verify = options.get("cacert", True)
        token = plugin.get_token(session.Session(auth=plugin, verify=verify, timeout=SECONDS))
    except (exceptions.ClientException, TypeError, ValueError) as error:
        raise OperatorError(f"Keystone at {url} gives no token: {error}") from error
    if token is None:
        raise OperatorError(f"Keystone at {url} gives no token")
    return str(token)
