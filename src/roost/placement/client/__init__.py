"""A client of a placement service over HTTP, for conductors, agents and the scheduler.

http             `HttpPlacement`: the operations of the interface, and allocation candidates
candidate_pages  the candidates of a query, page after page
query            from a `CandidateQuery` to a query string
bodies           bodies of requests and responses, to and from the client's types
transport        requests, renewal of tokens, and translation of errors
writes           writes at the generations that the service has, repeated after a conflict
"""

from roost.placement.client.http import HttpPlacement

__all__ = ["HttpPlacement"]
