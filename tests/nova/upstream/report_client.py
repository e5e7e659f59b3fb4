"""Nova's report client, which brings a placement service in line with a provider tree."""

import nova.conf
from keystoneauth1 import adapter, session, token_endpoint
from nova.context import RequestContext
from nova.exception import NovaException
from nova.scheduler.client.report import SchedulerReportClient

nova.conf.CONF([], default_config_files=[])
CONTEXT = RequestContext(user_id="user", project_id="project")
ROUNDS = 4
"""So often Nova's resource tracker updates a tree again after a conflict."""


def play(url, root, name, updates, moves):
    """Update the tree of a root with one client. Returns what came of each: null, or the error's name.

    An update is a list of operations: see tests/support/reported_trees.py, also for ``moves``.
    """
    plugin = token_endpoint.Token(url, "admin")
    through = adapter.Adapter(session.Session(auth=plugin), service_type="placement", raise_exc=False)
    client = SchedulerReportClient(adapter=through)
    done = set()
    outcomes = []
    for number, operations in enumerate(updates, 1):
        moving = moves if number == len(updates) else ()
        outcomes.append(_outcome(client, root, name, operations, moving, done))
    return outcomes


def _outcome(client, root, name, operations, moves, done):
    for _ in range(ROUNDS):
        tree = client.get_provider_tree_and_ensure_root(CONTEXT, root, name=name)
        for method, arguments in operations:
            _change(client, tree, method, arguments, done)
        allocations = None
        if moves:
            allocations = client.get_allocations_for_provider_tree(CONTEXT, name)
            for move in moves:
                _move(allocations, *move)
        try:
            client.update_from_provider_tree(CONTEXT, tree, allocations)
        except NovaException as error:
            outcome = type(error).__name__
            if outcome not in ("ResourceProviderUpdateConflict", "PlacementReshapeConflict"):
                break
        else:
            return None
    return outcome


def _change(client, tree, method, arguments, done):
    if method == "once":
        key, verb, path, body = arguments
        if key not in done:
            done.add(key)
            answer = client._client.request(path, verb, json=body, microversion="1.39")
            assert answer.status_code < 300, answer.text
    elif method != "ensure_child":
        getattr(tree, method)(*arguments)
    elif not tree.exists(arguments[2]):
        tree.new_child(*arguments)


def _move(allocations, consumer, name, source, target):
    held = allocations[consumer]["allocations"]
    amount = held[source]["resources"].pop(name)
    if not held[source]["resources"]:
        del held[source]
    held.setdefault(target, {"resources": {}})["resources"][name] = amount
