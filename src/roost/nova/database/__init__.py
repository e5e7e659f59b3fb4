"""Nova's databases, as far as the bridge reads them: functions of a connection, one module a noun.

tables         the tables and columns that are read, and the one table that is written
urls           the URLs of Nova's databases, for our drivers, filled where they are templates
cells          the cells of the API database, with a connection to the database of each
services       the compute services: signs of life, disabled, forced down
own_service    the row of this scheduler in the table of services
compute_nodes  the rows of compute nodes, and the stamps by which changed ones are found
instances      the instances on hosts, and the place of single ones
migrations     the migrations of instances that have not ended
aggregates     the host aggregates with their metadata and hosts
groups         the members of server groups
requests       the build requests of instances that are in no cell yet
states         the states of instances, the types and statuses of migrations
traces         the build requests, mappings and rows by which an instance is known
evacuations    the evacuations of instances whose host is down
actions        the actions of users on instances, the events of actions, and faults
"""
