"""Bare metal machines behind their BMCs, over Redfish.

One agent has many *nodes*: machines that an instance gets whole. Each is a root provider with one unit of a
custom resource class. A node is available while it is free and healthy; otherwise its unit is reserved.

           free ──▶ building ──▶ starting ──▶ running
            ▲           │           └──────┬─────┘
            │◀──────────┘                ending
            │                              │
            ├◀──────── cleaning ◀──────────┘
            │             │
            └── by an operator ── uncleaned

nodes_file     the operator's file of BMCs and nodes
bmc            requests to a BMC, by sushy, in threads
book           durable record of the instance of each node, which a BMC cannot keep
power_watch    polls the power of all nodes
machines       switches nodes on and off
power_off      powers one machine off, for the conductors of a host whose agent is silent
cleaning       cleans nodes after their instances
driver         the driver
options        options of the group ``redfish``
node_statuses  reasons why nodes are reserved, and the status of all nodes
words          files by which operators read node statuses and give orders to a running agent
errors         errors of machines and BMCs
"""
