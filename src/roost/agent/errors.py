"""Errors of agents and drivers on a compute host.

ComputeError
├── BuildFailed         the driver could not build an instance; the text is the reason
├── BuildEnded          a build was ended because its instance is to be destroyed
├── CannotStopGuests    the driver of a host stops no guests, or not this one
├── NoSuchGuest         a driver is to stop or start a guest that it does not have
├── HostFenced          a guest is not started, as the host has not heard of its cell for long
├── NotMigrated         a guest has not left its host: it runs on there
├── BadProviderName     a provider has a name or aggregate that cannot be stored
├── ProviderConfigConflict  a file configures an inventory that the driver reports itself, or twice
├── ReshapeNeeded       a driver's tree needs the allocations of its consumers to be moved
├── ReshapeRefused      a tree cannot be reshaped; nothing is changed
├── ReshapePostponed    the reshape of a tree waits for the end of builds that are under way
├── ProvidersRefused    placement refuses a part of a report; the rest is there
├── NoSuchProvider      a provider tree is asked for a provider that it does not have
├── HypervisorAway      the hypervisor cannot be asked now
├── UnreadableDescription  a hypervisor describes its host in a way that cannot be read
├── UnusableOptions     the options of a driver do not fit the host
└── StateUnusable       the agent's state directory cannot be read or written, or another agent uses it
"""

ANY_FAULT = "BuildFailed"
"""The code of a build failure for which the driver gives none."""


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


class CannotStopGuests(ComputeError):
    """The driver of a host stops no guests, or not this one; to try it again does not help."""


class NoSuchGuest(ComputeError):
    """A driver is to stop or start a guest of an attempt that it does not have."""


class HostFenced(ComputeError):
    """A guest is not started, as the cell was not heard for the time of the host's fence."""


class NotMigrated(ComputeError):
    """A guest that was to go to another host runs on, and no migration of it is under way; the text says why.

    A driver that does not know that raises something else.
    """


class BadProviderName(ComputeError):
    """A provider has a name or an aggregate that cannot be stored; the text shows it."""


class ProviderConfigConflict(ComputeError):
    """A file configures an inventory that the driver of the provider reports itself, or a provider that is
    configured already under its other name; the text names both."""


class ReshapeNeeded(ComputeError):
    """A driver that was asked for a tree without allocations wants to move some.

    Source: ``ReshapeNeeded`` of Nova's ``exception.py``.
    """


class ReshapeRefused(ComputeError):
    """A tree cannot be reshaped; the text says why. Nothing is changed.

    A driver may raise it too, if the allocations do not fit where it moves them.
    """


class ReshapePostponed(ComputeError):
    """The reshape of a tree waits until the builds that are under way on the host have ended."""


class ProvidersRefused(ComputeError):
    """Placement refuses a part of a report of providers; the rest is there."""


class NoSuchProvider(ComputeError, ValueError):
    """A provider tree is asked for a provider that it does not have."""


class StateUnusable(ComputeError):
    """The agent's state directory cannot be read or written, or another agent uses it."""


class HypervisorAway(ComputeError):
    """The hypervisor cannot be asked now; the text says why."""


class UnreadableDescription(ComputeError):
    """A hypervisor describes its host in a way that cannot be read; the text shows it."""


class UnusableOptions(ComputeError):
    """The options of a driver do not fit the host, or are no options; the text says which."""
