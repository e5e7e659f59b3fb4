"""Options: where they come from, and what operators are told of those that do nothing."""

from pathlib import Path

import pytest

from roost.cli.configuration import options_without_effect
from roost.model.errors import OperatorError
from roost.placement.options import PlacementOptions, read_options
from roost.process.option_source import Setting, Source
from roost.storage import DatabaseUrl

FILE = """
[DEFAULT]
debug = true
log_rotation_type = size
[placement_database]
connection = mysql+pymysql://placement:SECRET@db/placement?charset=utf8
connection_parameters = a=1&b=2
sync_on_startup = true
max_pool_size = 50
slave_connection = mysql+pymysql://placement:SECRET@db2/placement
[placement]
randomize_allocation_candidates = true
allocation_conflict_retry_count = 20
no_such_thing = SECRET
[workarounds]
optimize_for_wide_provider_trees = true
[oslo_policy]
enforce_new_defaults = false
enforce_scope = false
[oslo_middleware]
enable_proxy_headers_parsing = true
[keystone_authtoken]
password = SECRET
auth_url = http://x
[nowhere]
at = all
"""


def without_effect(options: PlacementOptions) -> list[str]:
    return options_without_effect(options.source or Source(), options.auth_strategy)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "placement.conf"
    path.write_text(FILE)
    return str(path)


def test_a_file_of_upstream_is_understood(file: str) -> None:
    options = read_options(file)
    assert isinstance(options.database, DatabaseUrl)
    assert options.database.reveal() == "mysql+pymysql://placement:SECRET@db/placement?charset=utf8&a=1&b=2"
    assert options.upgrade_database and options.proxies and options.logs.debug
    assert options.randomize_allocation_candidates and not options.enforce_new_defaults
    assert options.auth_strategy == "keystone"


def test_what_does_nothing_is_told_in_a_line_each_without_values(file: str) -> None:
    options = read_options(Source((file,), (Setting("api", "auth_strategy", "noauth2"),)))
    lines = without_effect(options)
    assert [line.removeprefix(f"{file}: ").partition(" is ignored: ")[0] for line in lines] == [
        "[DEFAULT] log_rotation_type",
        "[placement_database] max_pool_size",
        "[placement_database] slave_connection",
        "[placement] allocation_conflict_retry_count",
        "[placement] no_such_thing",
        "[workarounds] optimize_for_wide_provider_trees",
        "[oslo_policy] enforce_scope",
        "[keystone_authtoken]",
        "[nowhere] at",
    ]
    assert not any("SECRET" in line for line in lines)
    assert lines[4].endswith("no such option")


def test_with_keystone_its_options_are_known_and_a_mistake_is_told(tmp_path: Path) -> None:
    file = tmp_path / "placement.conf"
    file.write_text(
        "[keystone_authtoken]\nauth_type = password\nauth-url = http://x\nuser_domain_name = D\n"
        "memcache_servers = a:1\npasword = SECRET\n"
    )
    told = without_effect(read_options(str(file)))
    assert told == [
        f"{file}: [keystone_authtoken] pasword is ignored: no such option; did you mean password?"
    ]


def test_the_environment_is_over_the_file_and_the_command_line_over_both(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_PLACEMENT__MAX_ALLOCATION_CANDIDATES", "7")
    monkeypatch.setenv("OS_PLACEMENT__RANDOMIZE_ALLOCATION_CANDIDATES", "false")
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__MAX_OVERFLOW", "5")
    monkeypatch.setenv("OS_OTHER__THING", "5")
    settings = (
        Setting.parse("placement.max-allocation-candidates = 9"),
        Setting("api", "auth_strategy", "noauth2"),
    )
    options = read_options(Source((file,), settings))
    assert (options.max_allocation_candidates, options.randomize_allocation_candidates) == (9, False)
    told = [line for line in without_effect(options) if line.startswith("environment")]
    assert [line.partition(" is ")[0] for line in told] == ["environment: [placement_database] max_overflow"]


def test_a_list_can_be_set_on_the_command_line() -> None:
    settings = (
        Setting("cors", "allowed_origin", "http://a,http://b"),
        Setting("oslo_policy", "policy_dirs", "x"),
    )
    options = read_options(Source((), settings))
    assert options.cors.allowed_origin == ("http://a", "http://b")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[api]\nauth_strategy = guess\n", "auth_strategy"),
        ("[placement]\nmax_allocation_candidates = many\n", "max_allocation_candidates"),
        ("no section\n", "placement.conf"),
        ("# caf\udce9\n", "UTF-8"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "placement.conf"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(OperatorError, match=told):
        read_options(str(file))
    with pytest.raises(OperatorError, match=r"none\.conf"):
        read_options(str(tmp_path / "none.conf"))


def test_the_older_place_of_auth_strategy_counts(tmp_path: Path) -> None:
    file = tmp_path / "placement.conf"
    file.write_text("[DEFAULT]\nauth_strategy = noauth2\n")
    options = read_options(str(file))
    assert options.auth_strategy == "noauth2"
    assert without_effect(options) == []
