"""Backups of databases: made while they serve, restored whole or not at all.

making           copies databases into a new folder, with a manifest
restoring        fills a database from such a folder, and raises its incarnation
data_directory   all databases of a `roost up` together
manifest         what a backup contains
facts            revisions, identity and version of a database in one snapshot
roles            which schemas belong in which kind of database
new_folder       a folder that appears as a whole
sqlite           SQLite's online backup
postgresql       pg_dump, pg_restore and psql
mariadb          mariadb-dump and mariadb
tools            runs these programs
errors           the tree of this room's errors
"""
