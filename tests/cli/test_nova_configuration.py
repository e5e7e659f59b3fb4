"""The options of nova.conf: those that are taken, those without effect, those of Nova's other services."""

import json
import subprocess
from pathlib import Path

import pytest

from roost.cli.nova_configuration import is_nova_conf, nova_conf, tell_nova_options
from roost.model.errors import OperatorError
from roost.process.option_source import Setting, Source
from support.nova import NOT_INSTALLED, nova_python

CONF = """
[DEFAULT]
transport_url = rabbit://nova:secret@broker
control_exchange = nova
my_ip = 192.0.2.1
servicegroup_driver = db
use_journal = true
[api_database]
connection = mysql+pymysql://nova:secret@db/nova_api
max_pool_size = 5
[database]
connection = mysql+pymysql://nova:secret@db/nova_cell0
[scheduler]
workers = 4
max_attempts = 3
[filter_scheduler]
enabled_filtres = ComputeFilter
track_instance_changes = true
host_subset_size = 2
[glance]
api_servers = http://glance
[libvirt]
virt_type = kvm
[notifications]
versioned_notifications_topics = billing
[oslo_messaging_rabbit]
ssl = true
[placement]
auth_type = password
auth_url = http://keystone
"""

_OPTIONS = """
import json
import nova.conf
conf = nova.conf.CONF
groups = ("filter_scheduler", "scheduler", "metrics")
print(json.dumps({group: sorted(conf._groups[group]._opts) for group in groups}))
"""


def source(folder: Path, text: str = CONF, *settings: str) -> Source:
    file = folder / "nova.conf"
    file.write_text(text)
    return Source((str(file),), tuple(map(Setting.parse, settings)))


def test_options_by_their_reader(tmp_path: Path) -> None:
    found = nova_conf(source(tmp_path))
    assert found.taken == {
        "DEFAULT": ("transport_url", "control_exchange"),
        "api_database": ("connection",),
        "database": ("connection",),
        "scheduler": ("max_attempts",),
        "filter_scheduler": ("host_subset_size",),
        "notifications": ("versioned_notifications_topics",),
        "oslo_messaging_rabbit": ("ssl",),
        "placement": ("auth_type", "auth_url"),
    }
    ignored = [line.split(": ")[1] for line in found.ignored]
    assert ignored == [
        "[DEFAULT] servicegroup_driver is ignored",
        "[DEFAULT] use_journal is ignored",
        "[api_database] max_pool_size is ignored",
        "[scheduler] workers is ignored",
        "[filter_scheduler] track_instance_changes is ignored",
    ]
    [unknown] = found.unknown
    assert unknown.endswith("enabled_filtres is ignored: no such option; did you mean enabled_filters?")
    assert found.others == {"DEFAULT": 1, "glance": 1, "libvirt": 1}


def test_the_start_tells_only_options_of_the_scheduler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell_nova_options(source(tmp_path))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6
    assert not any("glance" in line or "libvirt" in line or "my_ip" in line for line in lines)
    assert "secret" not in "".join(lines)


def test_an_unknown_option_of_the_command_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"nova_bridge\.mood: no such option; did you mean mode"):
        tell_nova_options(source(tmp_path, CONF, "nova_bridge.mood=shadow"))


def test_a_nova_conf_has_a_broker_and_an_api_database(tmp_path: Path) -> None:
    assert is_nova_conf(source(tmp_path))
    assert not is_nova_conf(source(tmp_path, CONF.replace("transport_url", "other")))
    assert not is_nova_conf(source(tmp_path, "[api_database]\nconnection = sqlite:///roost.db\n"))


def test_each_option_of_novas_scheduler_is_taken_or_has_a_reason(tmp_path: Path) -> None:
    python = nova_python()
    if python is None:
        pytest.skip(NOT_INSTALLED)
    answer = subprocess.run(
        [python, "-W", "ignore", "-c", _OPTIONS], capture_output=True, text=True, check=True
    )
    options = json.loads(answer.stdout.splitlines()[-1])
    lines = [
        line for group, names in options.items() for line in (f"[{group}]", *(f"{n} = 1" for n in names))
    ]
    assert nova_conf(source(tmp_path, "\n".join(lines))).unknown == ()
