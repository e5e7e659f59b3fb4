"""Connections: what options, the environment and profiles come to, in their order."""

from collections.abc import Callable
from pathlib import Path

import click
import pytest

from roost.cli.connection import DEFAULTS, ServiceConnection, connection_to
from roost.cli.main import COMMANDS, roost_command
from roost.cli.profiles import Service
from roost.model.errors import OperatorError

PROFILES = """
default = "near"

[profiles.near]
url = "http://near:8778"
token = "of-near"

[profiles.far]
conductor = "https://far:8780"
scheduler = "https://far:8779/"
token_file = "far.token"
ca_file = "far.pem"

[profiles.cloud]
url = "http://cloud:1"

[profiles.cloud.keystone]
auth_url = "http://keystone"
password = "of-cloud"
"""

OFFLINE = {
    "agent", "archive-records", "bench", "cell-conductor", "completion", "conductor", "config", "dashboard",
    "db", "doctor", "man", "metrics", "neighbours", "nova-scheduler", "redfish", "replay-decision",
    "restore-records", "scheduler", "serve", "token", "up",
}  # fmt: skip
"""Commands that ask no service of a cloud, or are one."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / ".config" / "roost"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(PROFILES)
    (folder / "config.toml").chmod(0o600)
    (folder / "far.token").write_text("of-far\n")
    return tmp_path


@pytest.fixture
def made(home: Path) -> Callable[..., ServiceConnection]:
    """Makes a connection in an environment with these profiles."""

    def make(
        service: Service = "conductor", environment: dict[str, str] | None = None, **options: str
    ) -> ServiceConnection:
        return connection_to(
            service,
            **options,
            environment={"HOME": str(home), **(environment or {})},  # type: ignore[arg-type]
        )

    return make


def test_without_a_word_the_default_addresses_are_asked() -> None:
    for service, url in DEFAULTS.items():
        made = connection_to(service, environment={})
        assert (made.url, made.by_default, made.headers()) == (url, True, {"x-auth-token": "admin"})


def test_the_default_profile_counts_where_nothing_else_does(made) -> None:
    found = made("scheduler")
    assert (found.url, found.token) == ("http://near:8778", "of-near")
    assert "profile near in" in str(found)
    assert not found.by_default and not found.by_option


def test_options_come_before_the_environment_and_that_before_profiles(made) -> None:
    environment = {"ROOST_URL": "http://all", "ROOST_TOKEN": "of-environment", "ROOST_PROFILE": "far"}
    assert made(environment=environment).url == "http://all"
    assert made(environment=environment, url="http://option/").url == "http://option"
    assert made(environment=environment, profile="far").url == "https://far:8780"
    assert made(environment=environment, profile="far").token == "of-far"
    assert made(environment={"ROOST_PROFILE": "far", "ROOST_TOKEN": "x"}).token == "x"
    assert made(environment=environment, token="option").token == "option"
    environment["ROOST_SCHEDULER_URL"] = "http://scheduler"
    assert made("scheduler", environment).url == "http://scheduler"
    assert made("placement", environment).url == "http://all"


def test_the_token_of_a_profile_goes_to_its_own_addresses_alone(made) -> None:
    for elsewhere in (made(url="http://elsewhere"), made(environment={"ROOST_URL": "http://elsewhere"})):
        assert elsewhere.headers() == {"x-auth-token": "admin"}
    assert made(url="http://elsewhere", profile="near").token == "of-near"


def test_files_of_a_profile_lie_beside_it(made, home: Path) -> None:
    found = made("scheduler", profile="far")
    assert (found.url, found.token) == ("https://far:8779", "of-far")
    assert found.ca_file == home / ".config/roost/far.pem"
    assert made(profile="far", environment={"ROOST_CA_FILE": "/other.pem"}).ca_file == found.ca_file


def test_keystone_of_a_profile_is_asked_rather_than_that_of_the_environment(made) -> None:
    environment = {"ROOST_TOKEN": "x", "OS_AUTH_URL": "http://other"}
    found = made(profile="cloud", environment=environment)
    assert (found.token, found.keystone["auth_url"]) == (None, "http://keystone")
    assert made(environment={"OS_TOKEN": "of-openstack", "ROOST_URL": "http://x"}).headers() == {
        "x-auth-token": "of-openstack"
    }


def test_what_is_missing_is_named(made) -> None:
    with pytest.raises(OperatorError, match=r"profile far in .*config.toml has no address of the placement"):
        made("placement", profile="far")
    with pytest.raises(OperatorError, match=r"there is no profile fra in .*: it has cloud, far, near"):
        made(profile="fra")
    with pytest.raises(OperatorError, match="no profile up: no roost up runs"):
        made(environment={"ROOST_PROFILE": "up"})


@pytest.mark.parametrize(
    "url", ["localhost:8778", "ftp://x", "http://", "http://a b", "http://x:99999", "\n"]
)
def test_an_address_that_is_none_is_named(made, url: str) -> None:
    with pytest.raises(OperatorError, match="of --url is no URL: it is written with http://"):
        made(url=url)
    with pytest.raises(OperatorError, match="of ROOST_CONDUCTOR_URL is no URL"):
        made(environment={"ROOST_CONDUCTOR_URL": url})


def test_a_token_that_no_header_carries_is_refused_and_not_shown(made) -> None:
    for token in ("töken", "a\nb"):
        with pytest.raises(OperatorError, match="the token has characters") as refused:
            made(token=token).headers()
        assert token not in str(refused.value)


def test_every_command_that_asks_a_service_has_the_same_options() -> None:
    context = click.Context(roost_command)

    def leaves(command: click.Command) -> list[click.Command]:
        if not isinstance(command, click.Group):
            return [command]
        return [leaf for each in command.commands.values() for leaf in leaves(each)]

    wanted = {"--url", "--token", "--ca-file", "--profile"}
    for name in sorted(COMMANDS.keys() - OFFLINE):
        command = roost_command.get_command(context, name)
        assert command is not None
        for leaf in leaves(command):
            options = {option for each in leaf.params for option in each.opts}
            assert wanted <= options, f"{name} {leaf.name}"
