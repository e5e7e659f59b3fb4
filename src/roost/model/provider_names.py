"""The uuids of the providers that agents create."""

import uuid
from functools import lru_cache

_NAMESPACE = uuid.UUID("6f0d2a3e-6f57-4c3b-9d0a-7a1f6b5c2e11")


@lru_cache(maxsize=10_000)
def provider_uuid(name: str) -> str:
    """Return the uuid of a provider that an agent creates. It depends on the name alone."""
    return str(uuid.uuid5(_NAMESPACE, name))
