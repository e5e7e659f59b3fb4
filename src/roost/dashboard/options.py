"""The options of the dashboard."""

from pathlib import Path

from roost.process.options import OptionStruct, option


class DashboardOptions(OptionStruct, frozen=True, group="dashboard"):
    """The options of the dashboard.

    ``directory`` holds the key of the sessions, the sessions that were ended, and the index of the past. All
    of it may be deleted: sessions end, and the index is made again.
    """

    directory: str | None = option(
        None,
        help="Folder of the key of sessions and of the index of the past. It may be deleted: sessions end "
        "then, and the index is made again. Without it sessions end with the process, and there is no index.",
    )
    past_mebibytes: int = option(
        1024,
        min=16,
        max=1_048_576,
        help="Size of the index of the past, by which hosts, instances and the map are shown as of a time. "
        "A day of 25 commits a second takes some 200 MiB. The index forgets the oldest commits first.",
    )
    hosts: tuple[str, ...] = option(
        ("localhost", "127.0.0.1", "[::1]"),
        help="Names by which browsers may reach the dashboard, without ports. A request for another name is "
        "refused: it may come from a foreign page whose name was pointed at this address.",
    )
    session_hours: float = option(
        12.0, min=0.01, max=720.0, help="Hours after which a session ends, if its token does not end before."
    )
    logins_per_minute: int = option(
        20, min=1, max=10_000, help="Failed logins that are answered in a minute. More are refused with 429."
    )
    rack_key: str = option(
        "rack",
        help="Metadata key of host aggregates whose value is the rack of their members. Hosts without it are "
        "shown in no rack.",
    )
    conductor_endpoint: str | None = option(
        None,
        help="URL of the conductor that carries out what users do in the dashboard, with their own tokens. "
        "Without it the dashboard only shows; roost up needs none.",
    )
    conductor_ca_file: str | None = option(
        None,
        help="File with the certificates of the authorities that sign the conductor's; those of the machine "
        "by default.",
    )
    password_login: bool = option(
        True,
        help="With auth_strategy keystone, users log in with their name and password, which Keystone checks. "
        "Without it only with a token.",
    )

    @property
    def folder(self) -> Path | None:
        """The directory; None without one."""
        return None if self.directory is None else Path(self.directory)
