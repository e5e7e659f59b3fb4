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


def play(url, root, name, updates):
    """Update the tree of a root with one client. Returns what came of each: null, or the error's name.

    An update is a list of operations on the tree: ``[method, arguments]``.
    """
    plugin = token_endpoint.Token(url, "admin")
    through = adapter.Adapter(session.Session(auth=plugin), service_type="placement", raise_exc=False)
    client = SchedulerReportClient(adapter=through)
    return [_outcome(client, root, name, operations) for operations in updates]


def _outcome(client, root, name, operations):
    for _ in range(ROUNDS):
        tree = client.get_provider_tree_and_ensure_root(CONTEXT, root, name=name)
        for method, arguments in operations:
            getattr(tree, method)(*arguments)
        try:
            client.update_from_provider_tree(CONTEXT, tree)
        except NovaException as error:
            outcome = type(error).__name__
            if outcome != "ResourceProviderUpdateConflict":
                break
        else:
            return None
    return outcome
