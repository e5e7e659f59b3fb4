"""A placement service over HTTP, as conductors, agents and the scheduler see it.

http        `HttpPlacement`: every operation of the interface, and candidates
query       from a `CandidateQuery` to a query string
transport   asking, and what the answers mean
"""

from roost.placement.client.http import HttpPlacement

__all__ = ["HttpPlacement"]
