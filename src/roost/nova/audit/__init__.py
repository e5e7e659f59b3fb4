"""The audit of the bridge: claims that nobody answered for are found, reported, and freed by option.

    unanswered  the claims that nobody answered for: what proves each, pure
    suspects    the instances that may have such a claim
    looks       one look at the traces and claims of suspects
    rounds      the rounds under a lease, and the writes that free

Nova's conductor does not repeat a call of its scheduler. A scheduler that dies between the claim and its
answer, or answers after the conductor has given up, leaves a claim: of a boot, whose instance is in cell0
then; of an evacuation, beside the claim on the host that is down; of an unshelve. Nova's conductor overwrites
one of a resize or migration. A later call may be answered with such a claim: it is written again then, so
that the audit, which frees at the generation that it read, does not take it away.

A finding is confirmed when two rounds saw the same claim at the same generation. A round in which a database
does not answer confirms nothing.
"""
