"""A cloud with something to show on every page of the dashboard, which is the same each time.

Its clock stands still, its random numbers and uuids are drawn from one seed.

    layout   its hosts in cells, zones and racks, some with NUMA cells and devices
    names    hostile names of what tenants and operators name
    story    what has happened in it
    server   the cloud as a process that serves it
    process  the handle of that process for tests
"""
