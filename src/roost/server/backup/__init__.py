"""Backups of databases: made while they serve, restored whole or not at all.

creation         copies databases into a new folder, with a manifest
restore          fills a database from such a folder, and raises its incarnation
data_directory   all databases of a `roost up` together
manifest         the content of a backup, as a file in its folder
facts            revisions, identity and version of a database in one snapshot
roles            the schemas of each kind of database
new_folder       a folder that appears as a whole
sqlite           SQLite's online backup
postgresql       pg_dump, pg_restore and psql
mariadb          mariadb-dump and mariadb
tools            runs the client programs of databases
errors           the tree of errors of this folder
"""
