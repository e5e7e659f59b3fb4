"""Host aggregates and availability zones in the API database.

store   the aggregates, each change of which has a version
zones   the nodes whose availability zone a change of an aggregate changes
errors  the errors of changes
known   a copy of all aggregates in memory; the aggregates that providers have to join or leave
"""
