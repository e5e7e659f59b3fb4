"""The operations of the neighbours' service as an ASGI application."""

from typing import Any, Final

import falcon
import falcon.asgi
import msgspec
from oslo_policy.policy import RuleDefault

from roost.placement.options import PlacementOptions
from roost.server.neighbours import handlers as do
from roost.server.neighbours.accelerators import DeviceProfile, WantedArqs
from roost.server.neighbours.handlers import (
    NeighbourService,
    OneNetwork,
    OnePort,
    OnePortChange,
    OneSubnet,
    Patches,
)
from roost.storage import StorageError
from roost.web.app import Kernel
from roost.web.app import create_app as create_web_app
from roost.web.auth import Authenticator
from roost.web.auth.rules import PolicyRules
from roost.web.conventions import Conventions
from roost.web.errors import BadRequest, HTTPError
from roost.web.forwarded import through_proxies
from roost.web.operation import Handler, Operation
from roost.web.policy import Policy, Rule
from roost.web.query import read_parameters
from roost.web.request import Request, Response

RULE: Final = "neighbours:manage"
_RULE: Final = Rule(RULE)
_NETWORKS: Final = "/v2.0"


class _Filters:
    """The query parameters of a list. Each may be given once; an unknown one is refused."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def read(self, req: falcon.asgi.Request) -> dict[str, str]:
        found = read_parameters(req)
        for name, values in found.items():
            if name not in self._names:
                raise BadRequest(f"{name} is no filter here; there are: {', '.join(self._names)}")
            if len(values) > 1:
                raise BadRequest(f"{name} is given {len(values)} times")
        return {name: values[0] for name, values in found.items()}

    def describe(self) -> list[dict[str, Any]]:
        return [{"name": name, "in": "query", "schema": {"type": "string"}} for name in self._names]


_OF_PORTS: Final = _Filters("id", "name", "network_id", "device_id", "device_owner", "binding:host_id")
_NAMED: Final = _Filters("id", "name")
_OF_SUBNETS: Final = _Filters("id", "name", "network_id", "cidr")
_OF_ARQS: Final = _Filters("instance", "bind_state")
_WHICH_ARQS: Final = _Filters("arqs", "instance")
_PROFILE: Final = _Filters("name")


def _resource(
    path: str,
    body: Any,
    filters: _Filters,
    *,
    create: Handler,
    listed: Handler,
    show: Handler,
    delete: Handler,
) -> tuple[Operation, ...]:
    """Return the operations that all resources have: create, list, show and delete."""
    one = f"{path}/{{uuid}}"
    return (
        Operation("POST", path, _RULE, create, body=body, takes=(), status=201),
        Operation("GET", path, _RULE, listed, query=filters),
        Operation("GET", one, _RULE, show),
        Operation("DELETE", one, _RULE, delete, status=204, provides=()),
    )


_ARQS: Final = "/v2/accelerator_requests"

OPERATIONS: Final = (
    *_resource(
        f"{_NETWORKS}/networks",
        OneNetwork,
        _NAMED,
        create=do.create_network,
        listed=do.list_networks,
        show=do.show_network,
        delete=do.delete_network,
    ),
    *_resource(
        f"{_NETWORKS}/subnets",
        OneSubnet,
        _OF_SUBNETS,
        create=do.create_subnet,
        listed=do.list_subnets,
        show=do.show_subnet,
        delete=do.delete_subnet,
    ),
    *_resource(
        f"{_NETWORKS}/ports",
        OnePort,
        _OF_PORTS,
        create=do.create_port,
        listed=do.list_ports,
        show=do.show_port,
        delete=do.delete_port,
    ),
    Operation("PUT", f"{_NETWORKS}/ports/{{uuid}}", _RULE, do.update_port, body=OnePortChange, takes=()),
    *_resource(
        "/v2/device_profiles",
        list[DeviceProfile],
        _PROFILE,
        create=do.create_profile,
        listed=do.list_profiles,
        show=do.show_profile,
        delete=do.delete_profile,
    ),
    Operation("POST", _ARQS, _RULE, do.create_arqs, body=WantedArqs, takes=(), status=201),
    Operation("GET", _ARQS, _RULE, do.list_arqs, query=_OF_ARQS),
    Operation("GET", f"{_ARQS}/{{uuid}}", _RULE, do.show_arq),
    Operation("PATCH", _ARQS, _RULE, do.patch_arqs, body=Patches, takes=(), status=202, provides=()),
    Operation("DELETE", _ARQS, _RULE, do.delete_arqs, query=_WHICH_ARQS, status=204, provides=()),
)


class NeutronError(msgspec.Struct):
    """An error as Neutron tells it."""

    type: str
    message: str
    detail: str = ""


class NeighbourErrors(msgspec.Struct):
    """The body of every response that reports an error.

    Under ``/v2.0`` it has ``NeutronError``, elsewhere the members of Cyborg's faults.
    """

    neutron_error: NeutronError | msgspec.UnsetType = msgspec.field(
        name="NeutronError", default=msgspec.UNSET
    )
    faultcode: str | msgspec.UnsetType = msgspec.UNSET
    faultstring: str | msgspec.UnsetType = msgspec.UNSET
    debuginfo: msgspec.UnsetType | None = msgspec.UNSET


class NeighbourConventions(Conventions):
    """Errors in the forms of Neutron and Cyborg."""

    errors = NeighbourErrors

    def refuse(self, req: Request, resp: Response, error: HTTPError) -> None:
        text = str(error) or falcon.code_to_http_status(error.status).partition(" ")[2]
        kind = getattr(error, "kind", type(error).__name__)
        body = NeighbourErrors(faultcode="Client", faultstring=text, debuginfo=None)
        if req.path.startswith(f"{_NETWORKS}/"):
            body = NeighbourErrors(NeutronError(kind, text))
        resp.content_type = falcon.MEDIA_JSON
        resp.data = msgspec.json.encode(body)


def default_rules() -> list[RuleDefault]:
    """Return the default policy rules, which allow administrators and services."""
    return [RuleDefault(RULE, "role:admin or role:service", scope_types=["project"])]


def create_app(
    service: NeighbourService, authenticator: Authenticator, rules: PolicyRules, options: PlacementOptions
) -> falcon.asgi.App:  # type: ignore[type-arg]
    """Return the API of ports and accelerators."""
    proxies = options.proxies
    kernel = Kernel(
        service,
        authenticator,
        Policy(rules),
        NeighbourConventions(),
        unavailable=(StorageError,),
        request_type=Request if proxies is None else through_proxies(Request, proxies),
        body_seconds=options.limits.body_seconds,
    )
    return create_web_app(OPERATIONS, kernel)
