"""A small service of ports and accelerators, for platforms without a cloud's own.

It has the parts of Neutron's and Cyborg's APIs that a build needs, in their shapes: networks with pools of
addresses, ports, device profiles, accelerator requests. It switches nothing: it keeps the books of who has
which address and which unit of a device, and the driver of the host does the rest.
"""
