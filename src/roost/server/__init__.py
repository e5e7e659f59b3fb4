"""The programs: each opens databases and services, checks its options, and serves in worker processes.

programs      the parts of each command, and a program whose worker processes open them
process       a process and its parts: what they share, and the background tasks
parts         the parts, each with its options, databases and readiness
edge          the edge of every service: access log, tokens, limits
options       the options of the scheduler and of the conductors
nova_options  the options of the bridge to Nova
all_in_one    `roost up`: all parts in one process, with simulated hosts
neighbours    `roost neighbours`: a small service of ports and accelerators
workers       worker processes and their supervisor: signals, reload, TLS, systemd
backup        backups of databases that serve, and restores
"""
