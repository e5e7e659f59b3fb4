"""Nova's own client of its scheduler, with its context, over a broker."""

import functools
import os

from nova.scheduler import rpcapi

from nova import conf, context, exception, objects, rpc


@functools.cache
def _client(url):
    objects.register_all()
    os.environ["OS_DEFAULT__TRANSPORT_URL"] = url
    conf.CONF([], project="nova", default_config_files=[])
    rpc.set_defaults("nova")
    rpc.init(conf.CONF)
    return rpcapi.SchedulerAPI()


def _context():
    return context.RequestContext(
        "user", "project", auth_token="the-token", request_id="req-1", global_request_id="req-0"
    )


def _spec(instance):
    return objects.RequestSpec(
        instance_uuid=instance,
        project_id="project",
        num_instances=1,
        flavor=objects.Flavor(vcpus=1, memory_mb=512, root_gb=1, ephemeral_gb=0, swap=0, extra_specs={}),
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
    )


def select(url, instance, objects=True):
    """What a call returns: hosts and cells of its Selection objects, or the list of dicts."""
    answer = _client(url).select_destinations(_context(), _spec(instance), [instance], objects, objects)
    return [[[each.service_host, each.cell_uuid] for each in row] for row in answer] if objects else answer


def refusal(url, instance):
    """The class, text and arguments of the exception of Nova that a call raises."""
    try:
        select(url, instance)
    except exception.NovaException as error:
        kind = next(kind for kind in type(error).__mro__ if kind.__module__ == "nova.exception")
        return [kind.__name__, error.format_message(), error.kwargs]
    return None


def cast(url):
    """Send each cast that Nova knows."""
    client = _client(url)
    aggregate = objects.Aggregate(id=1, name="a")
    client.update_aggregates(_context(), [aggregate])
    client.delete_aggregate(_context(), aggregate)
    client.update_instance_info(_context(), "h1", objects.InstanceList(objects=[]))
    client.delete_instance_info(_context(), "h2", "a")
    client.sync_instance_info(_context(), "h3", ["a"])
