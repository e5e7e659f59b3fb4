"""Host aggregates and availability zones in the API database.

store        the aggregates, each change of which has a version
zones        the nodes whose availability zone a change of an aggregate changes
differences  the aggregates in placement that providers have to join or leave
errors       the errors of changes
known        a copy of all aggregates in memory, kept up to date by version
"""
