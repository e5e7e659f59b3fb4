"""What can go wrong on a compute host.

ComputeError
├── BuildFailed         the driver could not build an instance; the text is the reason
├── BuildEnded          a build was ended because its instance is to be destroyed
├── BadProviderName     a provider has a name or aggregate that cannot be stored
├── ProviderConfigConflict  a file says of a provider what its driver says as well
├── ProvidersRefused    placement refuses a part of a report; the rest is there
├── NoSuchProvider      a provider tree is asked for a provider that it does not have
└── StateUnusable       the agent's state directory cannot be read or written, or another agent uses it
"""

ANY_FAULT = "BuildFailed"
"""The code of failures whose driver names none."""


class ComputeError(Exception):
    """Any failure of an agent or driver."""


class BuildFailed(ComputeError):
    """The driver could not build an instance; the text is the reason, as the user will read it.

    ``code`` names the kind of failure for programs. ``retryable``: another host may succeed; False where no
    other host can cure the cause, such as an image that does not exist.
    """

    def __init__(self, text: str, code: str = ANY_FAULT, retryable: bool = True) -> None:
        super().__init__(text)
        self.code = code
        self.retryable = retryable


class BuildEnded(ComputeError):
    """A build was ended because its instance is to be destroyed."""


class BadProviderName(ComputeError):
    """A provider has a name or an aggregate that cannot be stored; the text shows it."""


class ProviderConfigConflict(ComputeError):
    """A file configures an inventory that the driver of the provider reports itself; the text names both."""


class ProvidersRefused(ComputeError):
    """Placement refuses a part of a report of providers; the rest is there."""


class NoSuchProvider(ComputeError, ValueError):
    """A provider tree is asked for a provider that it does not have."""


class StateUnusable(ComputeError):
    """The agent's state directory cannot be read or written, or another agent uses it."""
