"""Candidate sources: where the hosts and allocation candidates of a run come from.

candidate_source      the base class, and the views of hosts that filters and weighers get
fleet_candidates      candidates straight from the fleet
fallback_candidates   the candidates of several queries, of which any may be served
fetched_candidates    an answer of ``GET /allocation_candidates``, which may serve for some seconds
candidate_order       the order in which a host's candidates are claimed
reported_candidates   nodes with room by the amounts that they report
reported_gateway      decisions on reported amounts, as before placement existed; nothing is written
source_choice         reported amounts while compute services are too old for placement, else placement
"""
