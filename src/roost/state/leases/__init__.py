"""Leases: processes own work under them, and the work of a process that stops renewing is free for others.

    lease     one lease: name, holder, epoch, counter; the table of leases, which each database has
    works     transactions on leases
    tenure    the coroutines that renew a process's lease and watch for how long others' have stood still
    liveness  the hosts or processes that are up, as one observer sees it

Each process holds one lease and renews it. A piece of work names its owner, the nonce of a lease's holder,
and an epoch that each change of the owner raises. Every write for it carries both, and changes nothing if
they are outdated. An observer that sees a lease stand still for `LeaseTimes.lease` vacates it: work whose
owner holds no lease is free. No clocks are compared.
"""

from roost.state.leases.lease import (
    VACANT,
    Lease,
    Stamp,
    create_leases,
    holders,
    lease_of,
    leases,
    leases_table,
)
from roost.state.leases.liveness import ObservedLiveness
from roost.state.leases.tenure import FREED, LeaseTimes, Standstill, Tenure, keep_lease, renew, watch_leases
from roost.state.leases.works import (
    AcquireLease,
    acquire,
    all_leases,
    forget_leases,
    leases_of_kind,
    read_leases,
    read_stamps,
    release_lease,
    renew_lease,
    vacate_all,
    vacate_leases,
)

__all__ = [
    "FREED",
    "VACANT",
    "AcquireLease",
    "Lease",
    "LeaseTimes",
    "ObservedLiveness",
    "Stamp",
    "Standstill",
    "Tenure",
    "acquire",
    "all_leases",
    "create_leases",
    "forget_leases",
    "holders",
    "keep_lease",
    "lease_of",
    "leases",
    "leases_of_kind",
    "leases_table",
    "read_leases",
    "read_stamps",
    "release_lease",
    "renew",
    "renew_lease",
    "vacate_all",
    "vacate_leases",
    "watch_leases",
]
