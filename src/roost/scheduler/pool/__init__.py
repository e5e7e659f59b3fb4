"""The hosts that one run may choose from, and what they weigh.

field          the protocol
offered_field  filters and weighs all that candidate sources offer; scheduler/cache goes on from what is kept
group_members  the members of the request's server group
weighing       one weight for each host, kept right from claim to claim
"""
