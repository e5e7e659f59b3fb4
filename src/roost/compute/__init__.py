"""The agent on a compute host: says what the host has, builds and destroys what its cell says.

provider_tree   a host's resource providers as its driver describes them
placement       what an agent needs of a placement service
reporting       brings placement in line with a provider tree
agent           one host: its driver, its state of health, its guests
service         the agents of one process: work from the cell, results back, heartbeats
drivers/        how a kind of host builds: simulated
errors          what can go wrong
"""
