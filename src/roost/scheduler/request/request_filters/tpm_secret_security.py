"""Virtual TPMs need nodes that keep their secrets as the flavor says."""

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.demand.features import virtual_tpm
from roost.scheduler.request.demand.flavor_image import FlavorImage
from roost.scheduler.request.request_filters.narrowed_query import with_root_traits

_SECURITY = ("user", "host", "deployment")


def require_tpm_secret_security(
    query: CandidateQuery, spec: RequestSpec, options: SchedulerOptions
) -> CandidateQuery:
    """Require the trait of ``hw:tpm_secret_security`` (default ``user``) on the root, for a virtual TPM."""
    asked = FlavorImage(spec.flavor, spec.image)
    if virtual_tpm(asked) is None:
        return query
    security = asked.of_flavor("tpm_secret_security", _SECURITY) or "user"
    return with_root_traits(query, f"COMPUTE_SECURITY_TPM_SECRET_SECURITY_{security.upper()}")
