"""The limit of failed logins, so that nobody tries passwords or tokens one after another."""

from collections import deque
from collections.abc import Callable

from roost.web.errors import TooMany

WINDOW_SECONDS = 60.0


class TooManyLogins(TooMany):
    """Too many logins have failed in the last minute."""

    code = "dashboard.too_many_logins"
    headers = {"retry-after": str(int(WINDOW_SECONDS))}  # noqa: RUF012 - as in the class above


class LoginLimit:
    """Counts failed logins of the last minute, of all clients together: an attacker has many addresses.

    ``most``: failed logins of a minute. ``monotonic``: seconds of a clock that never goes back.
    """

    def __init__(self, most: int, monotonic: Callable[[], float]) -> None:
        self._most = most
        self._monotonic = monotonic
        self._failed: deque[float] = deque(maxlen=most)

    def check(self) -> None:
        """Raise `TooManyLogins` if no further login may be tried now."""
        oldest = self._monotonic() - WINDOW_SECONDS
        if len(self._failed) == self._most and self._failed[0] > oldest:
            raise TooManyLogins(f"More than {self._most} logins have failed in a minute; wait for a minute.")

    def failed(self) -> None:
        """Count a failed login."""
        self._failed.append(self._monotonic())
