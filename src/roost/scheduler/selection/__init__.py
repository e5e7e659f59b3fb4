"""The algorithm of the scheduler: filter, weigh, pick, claim, go on after a refusal, find alternates.

It does no I/O.

host_pools         what all runs of a scheduler choose hosts from and by: node table, options, plugins, cache
selection          chooses hosts, one instance after another
alternates         other hosts for each placed instance
replacement        checks an alternate again, then swaps the claim to it
claim_result       the result of a claim attempt, from every error; placement's errors as the scheduler's
running_selection  a selection in progress, and the write of a claim: for all gateways
outcome            claims, claim attempts and the outcome of a run
bounds             limits of one run: claims, candidates, seconds, units of work
"""
