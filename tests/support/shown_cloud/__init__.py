"""A cloud with something to show on every page of the dashboard, which is the same each time.

Its clock stands still, its random numbers and uuids are drawn from one seed.

    layout       its hosts in cells, zones and racks, some with NUMA cells and devices
    names        hostile names of what tenants and operators name
    storyteller  what may happen in a cloud, and its clock
    story        what has happened in this one
    server       a cloud as a process that serves it
    process      the handle of such a process

`tools/screenshots` has another layout and another story, for the pictures in the documents.
"""
