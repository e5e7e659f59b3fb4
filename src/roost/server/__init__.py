"""The programs: each opens databases and services, checks its options, and serves in worker processes.

placement   `roost serve`: the Placement API on a ledger
scheduler   `roost scheduler`
conductor   `roost conductor` and `roost cell-conductor`
neighbours  `roost neighbours`: a small service of ports and accelerators
all_in_one  `roost up`: placement, scheduler, conductors, cells and simulated hosts in one process
workers     worker processes and their supervisor: signals, reload, TLS, systemd
backup      backups of databases that serve, and restores
"""
