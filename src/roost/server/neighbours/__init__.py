"""A small service of ports and accelerators, for platforms without a cloud's own.

It has the parts of Neutron's and Cyborg's APIs that a build needs, in their formats: networks with pools of
addresses, ports, device profiles, accelerator requests. It configures no switch and no device: it records
which port has which address and which request has which device, and the driver of the host does the rest.

options       its options
app           the ASGI application
handlers      the handlers of operations over HTTP
networks      networks, subnets and ports
accelerators  device profiles and accelerator requests
store         reads and writes of resources in a transaction
errors        the errors that the API answers with
"""
