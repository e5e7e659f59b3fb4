"""Server groups.

store       the groups in the API database, and the instances that were requested for each
operations  the rows of ``/v1/server-groups``, and their policy rules
handlers    what the rows do
types       bodies and queries
"""
