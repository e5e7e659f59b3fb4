"""The past of the fleet: an index of the ledger's commits, and what pages read from it.

A host or a consumer as of a commit is read by undoing its own commits only. The index lives in a folder that
is bounded, is made in the background and may be deleted at any time: the ledger has all of it.

Moments and views:
    past_moments  moments as people name them: a commit or a time
    past_reads    the past that pages read
    things_past   hosts and consumers as they were
    past_reader   the parts of providers and consumers as they were
    fleet_columns  amounts of all providers as they were
    past_nodes    amounts of compute nodes as they were
    hosts_then    the hosts of now with the amounts of then
    row_keys      the keys of providers by row
    present_rows  rows of single providers, read from the tables

Over time:
    sampler       looks at the cloud once a minute
    samples       states of hosts and instances, and decisions, by minute and hour
    state_log     the states of hosts at each minute
    use_history   use, capacity and claims at many times

The index:
    index_entries  the content of commits as tables
    index_block    entries of consecutive commits, found by provider, consumer and commit
    index_view     all blocks as they are at one time
    past_index     the blocks, of files and of newer commits
    index_file     the format of a file
    index_folder   the files
    index_keeper   follows the ledger, and fills in older commits
"""
