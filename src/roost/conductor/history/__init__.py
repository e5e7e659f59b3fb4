"""The histories of instances, from the API database, their cells and the records.

views       reads histories from all three
timeline    merges the facts of all three into one list of actions
types       histories as bodies of HTTP responses
operations  the operation over HTTP, and its policy rule
"""
