"""The histories of instances, from the API database, their cells and the records.

views       reads histories from all three
timeline    merges the facts of all three into one list of actions
actions     actions, begun and ended
shelf       the shelving or unshelving that is under way
runs        the runs of the scheduler, joined to the actions that they are of
types       histories as bodies of HTTP responses
operations  the operation over HTTP, and its policy rule
"""
