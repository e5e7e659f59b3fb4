"""The histories of instances, from the API database, their cells and the records.

views       reads histories from all three
timeline    merges the facts of all three into one list of actions
types       histories as bodies of HTTP responses
handlers    the operation over HTTP
operations  its path and its policy rule
"""
