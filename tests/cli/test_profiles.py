"""Profiles: the user's file, and the one that `roost up` writes beside its data."""

import os
from pathlib import Path

import pytest

from roost.cli.profiles import ClientProfile, announced, chosen_profile
from roost.model.errors import OperatorError


def written(home: Path, text: str | bytes, mode: int = 0o600) -> dict[str, str]:
    """The environment of a home with this file of profiles."""
    file = home / ".config/roost/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    file.chmod(mode)
    return {"HOME": str(home)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[profiles.prod]\nulr = 'x'", r"profiles.prod.ulr is unknown: did you mean url\?"),
        ("[profiles.prod]\nurl = 5", "profiles.prod.url: 5 is a number, not a text"),
        ("profiles = 5", r"profiles: write tables, as \[profiles.NAME\]"),
        ("default = 5", "default: 5 is no name"),
        ("[prod]\nurl = 'x'", "prod: unknown; known: default, profiles"),
        ("[profiles.prod", "cannot be read: Expected"),
        (b"\xff\xfe", "cannot be read: 'utf-8' codec"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_file_and_key(tmp_path: Path, text, words: str) -> None:
    with pytest.raises(
        OperatorError, match=rf"profiles in {tmp_path}/.config/roost/config.toml:? ?.*{words}"
    ):
        chosen_profile(None, written(tmp_path, text))


def test_an_unreadable_token_is_named(tmp_path: Path) -> None:
    found = chosen_profile("a", written(tmp_path, "[profiles.a]\nurl = 'http://x'\ntoken_file = 'none'"))
    assert found is not None
    with pytest.raises(
        OperatorError, match=r"token_file of profile a in .*none cannot be read: No such file"
    ):
        found.token()


def test_a_file_with_secrets_that_others_may_read_is_told(tmp_path: Path, capsys) -> None:
    text = "[profiles.a]\nurl = 'http://x'\ntoken = 'secret'\n[profiles.b]\nurl = 'http://x'"
    chosen_profile("a", written(tmp_path, text, 0o644))
    told = capsys.readouterr().err
    assert "chmod 600" in told and "secret'" not in told
    chosen_profile("b", written(tmp_path, text, 0o644))
    chosen_profile("a", written(tmp_path, text))
    assert capsys.readouterr().err == ""


def test_without_a_home_there_are_no_profiles(tmp_path: Path) -> None:
    assert chosen_profile(None, {}) is None
    with announced(tmp_path, ClientProfile(url="http://here"), {}):
        assert chosen_profile(None, {}) is None


def test_a_running_system_is_found_until_it_ends(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path)}
    first, second = tmp_path / "first", tmp_path / "second"
    for each in (first, second):
        each.mkdir()
    with announced(first, ClientProfile(url="http://first", token='"odd"'), environment):
        found = chosen_profile(None, environment)
        assert found is not None and (found.profile.url, found.token()) == ("http://first", '"odd"')
        assert found.file.stat().st_mode & 0o077 == 0
        with announced(second, ClientProfile(url="http://second"), environment):
            latest = chosen_profile("up", environment)
            assert latest is not None and latest.profile.url == "http://second"
        assert [each.name for each in second.iterdir()] == []
    assert chosen_profile(None, environment) is None


def test_a_system_that_was_killed_is_not_asked(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path)}
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    with announced(tmp_path, ClientProfile(url="http://here"), environment):
        file = tmp_path / "profile.toml"
        file.write_text(file.read_text().replace(f"pid = {os.getpid()}", f"pid = {child}"))
        assert chosen_profile(None, environment) is None


def test_a_profile_of_the_user_comes_before_the_running_system(tmp_path: Path) -> None:
    environment = written(tmp_path, "default = 'mine'\n[profiles.mine]\nurl = 'http://mine'\n")
    with announced(tmp_path, ClientProfile(url="http://here"), environment):
        found = chosen_profile(None, environment)
        assert found is not None and found.profile.url == "http://mine"
        running = chosen_profile("up", environment)
        assert running is not None and running.profile.url == "http://here"


def test_a_home_that_cannot_be_written_is_told_and_no_error(tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_text("precious")
    with announced(tmp_path, ClientProfile(url="http://here"), {"HOME": str(tmp_path / "file")}):
        pass
    assert "commands need --url http://here" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "precious"
