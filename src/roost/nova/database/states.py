"""The states of instances, and the types and statuses of migrations, as Nova writes them."""

from typing import Final

BUILDING: Final = "building"
"""The state of an instance that is being built, also while it waits in a compute's queue. Source of all
states: ``nova.compute.vm_states``."""

FAULTY: Final = "error"
"""The state of an instance whose build, or a later action, has failed."""

OFFLOADED: Final = "shelved_offloaded"
"""The state of an instance that is shelved, and on no host."""

EVACUATION: Final = "evacuation"
"""The type of the migration of an instance whose host is down. Its claim stays on the instance itself."""

ACCEPTED: Final = "accepted"
"""The status of a migration until a compute service takes it, or it fails before that."""

FAILED: Final = "error"
"""The status of a migration that failed."""
