"""Live pages: one stream of events for each browser.

    rounds, once a second ──▶ hub ──▶ the queue of each viewer ──▶ stream ──▶ browser
      tick     something has changed: a commit, the state or the report of a host
      layout   the id of the map's layout, when hosts have come, gone or moved
      events   the logs of events have new ones
      levels?  the hosts of one map whose bytes have changed

An event is encoded once for all viewers. A viewer who does not take the events gets one that makes its map
read everything again, in place of a queue that grows.

viewer           a viewer: the topics and a bounded queue
map_changes      the changes of the bytes of one map since the last round
hub              the viewers, and the rounds
log_looks        looks at the logs of events as long as somebody views them
live_operations  the stream over HTTP
"""
