"""One-time tokens of printed addresses, for services without authentication.

Such a service believes every request that reaches it, and any page of the web that a browser shows can send
requests to 127.0.0.1. A session begins only with the address that was printed on the terminal.
"""

import secrets
from pathlib import Path

from roost.process.durable_file import replace_file


class OneTimeToken:
    """The token that begins the next session. Each is used once; then there is a new one.

    ``path``: the file that has the address of the next session, for its owner alone; None: there is no file.
    ``address``: the URL of the login page.
    """

    def __init__(self, address: str, path: Path | None) -> None:
        self._address = address
        self._path = path
        self._token = ""
        self._renew()

    @property
    def address(self) -> str:
        """The address that begins the next session."""
        return f"{self._address}?once={self._token}"

    @property
    def path(self) -> Path | None:
        """The file that has the address."""
        return self._path

    def use(self, token: str) -> bool:
        """Return whether this is the token, which is spent then."""
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return False
        self._renew()
        return True

    def _renew(self) -> None:
        self._token = secrets.token_urlsafe(24)
        if self._path is not None:
            replace_file(self._path, f"{self.address}\n".encode())
