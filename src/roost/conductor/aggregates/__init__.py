"""Host aggregates and availability zones: an entity of the API database that no agent owns.

store            the aggregates in the database; each change has a version
host_aggregates  changes by the rules that need the cells: names of nodes, instances on them
zones            which nodes change their availability zone with a change of an aggregate
known            the aggregates as they were read last, kept up to date by version
mirror           the members, mirrored to placement and healed there
differences      which providers are to join or leave which aggregates
operations       the operations over HTTP, and their policy rules
handlers, types  their handlers, bodies and queries
errors           the errors of changes
"""
