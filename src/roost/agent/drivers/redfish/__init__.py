"""Bare metal machines behind their BMCs, over Redfish.

One agent has many *nodes*: machines that are given away whole. Each is a root provider with one unit of the
resource class of its kind. A node is offered while nothing stands against it; in all other states its unit
is reserved.

           free ──▶ building ──▶ starting ──▶ running
            ▲           │           └──────┬─────┘
            │◀──────────┘                ending
            │                              │
            ├◀──────── cleaning ◀──────────┘
            │             │
            └── by an operator ── uncleaned

`nodes_file`   which nodes there are, as the operator has written it
`bmc`          what is asked of a BMC, by sushy, in threads
`book`         which node carries which instance: a BMC keeps nothing of that kind
`watching`     the power of all nodes, seen again and again
`machines`     switches nodes on and off, and cleans them
`driver`       the driver that the agent asks
`words`        what an operator says to a running agent, and what it tells
"""
