"""Conductors: they carry out accepted requests, and decide when to try again.

The super conductor and its requests:

    super_conductor    the asyncio shell: accepts requests durably, has them placed, hands instances to cells
    request_worker     the requests and deletions that one process works on, and the coroutines that find more
    request_progress   the progress of a request from its acceptance until each instance is in a cell
    deletions          deletions, from their acceptance until nothing of the instance is left

The conductor of one cell:

    cell_conductor     the coroutines of one process for one cell
    cell_work          the queue: takes failed builds to alternates, frees the claims of destroyed instances
    owned_work         the work that one conductor owns, and the pauses after work that failed
    failed_instance    request spec, claim and reasons of an instance whose build failed
    shelved_instance   the host that is looked for when an instance is unshelved
    announced_work     the address at which other processes announce work for it
    time_limits        the end of builds that no host confirms, and of deletions on hosts that do not answer

Both (their options are in `roost.server.options`, those of one module beside it):

    context            the contexts of conductors: a process with placement and a scheduler
    claim_release      the release of an instance's claim, also of one that is made after its end
    backoff            the number of attempts of work that failed, and the pauses between them

The state of all instances compared:

    comparison         claims, mappings and instances compared: pure
    verify             the comparison for ``roost db verify``, of all databases
    audit/             the comparison all the time, with repairs

The API:

    http               all operations of a conductor
    instances/         instances, asked for, shown, deleted
    maintenance/       plans that empty many hosts in few groups
    moves/             moves of instances, asked for and carried out
    findings           problems of a cloud in one sentence each, with a severity
    requester          the project and user of a request
    request_check      the check of a request before it is accepted
    neighbours         ports and device profiles that a request names
    history/           histories of instances
    evacuation/        hosts that are proved to be dead and evacuated by themselves
    events/            events of the cloud
    hosts/             cells and hosts, added, disabled, moved and removed by operators
    words/             operators' words: what is disabled, and why
    aggregates/        host aggregates and availability zones, mirrored to placement
    server_groups/     server groups
    agent_endpoint/    the endpoint of a cell for the agents of its hosts

Retry policy lives here: ``max_attempts`` hosts are tried for an instance. The scheduler only gets the number
of alternates that are wanted. Every step can be repeated; work that a crash interrupts is resumed from the
databases.
"""
