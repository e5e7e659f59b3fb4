"""Benchmark of the dashboard: ``roost bench dashboard``.

benchmark         the goals, the table, and the command
page_views        the times of pages, of a first paint, and from a commit to its event
watched_claims    claims beside viewers, in turns with claims without them
viewers           a process that views open pages: streams, and the regions that are fetched again
viewers_process   its start and its end

cloud_databases   racks, instances and decisions of a fleet, for the pages that show them
dashboard_process the dashboard as a process beside the service that claims
timed_connection  an HTTP connection that counts bytes and seconds
event_stream      a stream of events that is read one by one
first_paint       the files and data that a page needs for its first paint
"""
