"""The configuration files of a Nova cloud for tests: one for each of its processes, and Roost's own."""

from collections.abc import Mapping
from pathlib import Path

Sections = Mapping[str, Mapping[str, object]]


def write(path: Path, *parts: Sections) -> Path:
    """Write a configuration file; the options of later parts are in the sections of earlier ones."""
    sections: dict[str, dict[str, object]] = {}
    for part in parts:
        for name, options in part.items():
            sections.setdefault(name, {}).update(options)
    lines = (
        f"[{name}]\n" + "".join(f"{option} = {value}\n" for option, value in options.items())
        for name, options in sections.items()
    )
    path.write_text("\n".join(lines))
    return path


def of_nova(folder: Path, placement: str, stubs: str) -> Sections:
    """The options of all processes of Nova. There is no Keystone: a fixed token is that of each service."""
    token = {"auth_type": "admin_token", "token": "admin"}
    return {
        "DEFAULT": {
            "concurrency_backend": "threading",
            "state_path": folder,
            "my_ip": "127.0.0.1",
            "use_stderr": True,
            "log_options": False,
            "rpc_response_timeout": 60,
            "long_rpc_timeout": 60,
            "report_interval": 2,
            "service_down_time": 60,
            "graceful_shutdown_timeout": 5,
            "vif_plugging_timeout": 0,
            # The periodic tasks that ask the hypervisor or the network service for guests.
            "sync_power_state_interval": -1,
            "heal_instance_info_cache_interval": -1,
            "update_resources_interval": 20,
        },
        "compute": {"live_migration_wait_for_vif_plug": False},
        "conductor": {"workers": 1},
        "database": {"max_retries": 2, "retry_interval": 1},
        "glance": {"api_servers": stubs},
        "neutron": {**token, "endpoint": stubs, "endpoint_override": stubs},
        "oslo_concurrency": {"lock_path": folder / "locks"},
        "oslo_messaging_notifications": {"driver": "noop"},
        "oslo_messaging_rabbit": {"rabbit_retry_interval": 1, "rabbit_retry_backoff": 1},
        "placement": {**token, "endpoint": placement, "endpoint_override": placement},
        "quota": {"driver": "nova.quota.NoopQuotaDriver"},
        "vnc": {"enabled": False},
    }


def of_databases(api: str | None, main: str) -> Sections:
    """The options that name Nova's databases."""
    named = {"database": {"connection": main}}
    return named if api is None else {**named, "api_database": {"connection": api}}


def of_compute(host: str, transport: str, folder: Path) -> Sections:
    """The options of a nova-compute. ``folder``: it keeps its identity there."""
    return {
        "DEFAULT": {
            "host": host,
            "state_path": folder,
            "transport_url": transport,
            "compute_driver": "memory_hypervisor.MemoryHypervisor",
        }
    }
