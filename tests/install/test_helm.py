"""The chart rendered by Helm: it makes the manifests, its variants are valid, what cannot work is refused."""

import configparser
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from install.manifests import CHART, FOLDER, RENDERING, Manifest, containers, mounted, of_kind, parse, read
from install.test_helm_values import GUIDE, URL, merged
from roost.ledger.retention import CommitRetention
from roost.placement.options import read_options
from roost.process.option_source import Source
from support.helm import find_helm, helm

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(find_helm() is None, reason="helm is not there: tools/install-helm"),
]

WHOLE: dict[str, Any] = yaml.safe_load((FOLDER / "whole-values.yaml").read_text())
KEYSTONE = {"keystone_authtoken": {"auth_type": "password", "password": "a$b"}}
ALONE = {
    "databases": {"api": URL},
    "secretConfig": KEYSTONE,
    "conductor": {"enabled": False},
    "dashboard": {"enabled": False},
}


def template(values: dict[str, Any], folder: Path, *arguments: str) -> str:
    """Render the chart. Raises `AssertionError` with what Helm says if it refuses."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    done = helm("template", "roost", CHART, "--namespace", "roost", "--values", file, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rendered(values: dict[str, Any], folder: Path) -> list[Manifest]:
    """Render the chart, and let Kubernetes' schemas check every object."""
    manifests = read(template(values, folder))
    for each in manifests:
        if each["kind"] != "ServiceMonitor":
            kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)
    for container in containers(manifests):
        parse(container.arguments)
    return manifests


@pytest.mark.parametrize("name", RENDERING["NAMES"])
def test_the_manifests_are_what_helm_renders(name: str) -> None:
    assert RENDERING["render"](find_helm(), name) == (FOLDER / f"{name}.yaml").read_text()


def test_the_chart_has_no_fault_that_helm_knows() -> None:
    for arguments in ((), ("--values", FOLDER / "whole-values.yaml")):
        checked = helm("lint", "--strict", CHART, *arguments)
        assert checked.returncode == 0, checked.stdout


def test_values_of_the_guide_are_rendered(tmp_path: Path) -> None:
    everything, alone, ingress = GUIDE
    for values in (everything, merged(ingress, everything)):
        manifests = rendered({**values, "tokens": WHOLE["tokens"]}, tmp_path)
        assert len(of_kind(manifests, "Deployment")) == 5
    assert len(of_kind(manifests, "Ingress")) == 1
    assert len(of_kind(rendered(alone, tmp_path), "Deployment")) == 1


def test_the_notes_say_how_to_go_on() -> None:
    values = FOLDER / "whole-values.yaml"
    done = helm("install", "roost", CHART, "--namespace", "cloud", "--dry-run=client", "--values", values)
    assert done.returncode == 0, done.stderr
    notes = done.stdout.partition("NOTES:")[2]
    for said in ("roost cell add rack2", "http://roost-placement.cloud.svc:8778", "https://roost.example/ui"):
        assert said in notes


def test_all_may_be_stopped(tmp_path: Path) -> None:
    manifests = rendered(merged({"stopped": True}, WHOLE), tmp_path)
    assert {each["spec"]["replicas"] for each in of_kind(manifests, "Deployment")} == {0}


def test_an_upgrade_of_the_tables_comes_first_with_copies_of_what_it_reads(tmp_path: Path) -> None:
    manifests = rendered(merged({"databaseUpgrade": {"hook": True}}, WHOLE), tmp_path)
    hooks = [each for each in manifests if "helm.sh/hook" in each["metadata"].get("annotations", {})]
    weights = [(int(each["metadata"]["annotations"]["helm.sh/hook-weight"]), each["kind"]) for each in hooks]
    assert sorted(weights) == [(-5, "ConfigMap"), (-5, "Secret"), (0, "Job")]
    # It needs nothing that is installed after it.
    upgrades = [each for each in containers(manifests) if each.owner["kind"] == "Job"]
    for upgrade in upgrades:
        files = mounted(hooks, upgrade)
        assert set(parse(upgrade.arguments).params["config_files"]) <= set(files)
        assert "serviceAccountName" not in upgrade.pod


def test_a_secret_of_ones_own_replaces_that_of_the_chart(tmp_path: Path) -> None:
    values = {**WHOLE, "existingSecret": "own", "databases": {}, "tokens": ""}
    values["cells"] = [{"name": "rack1"}]
    manifests = rendered(values, tmp_path)
    assert not of_kind(manifests, "Secret")
    for container in containers(manifests):
        [volume] = [each for each in container.pod["volumes"] if each["name"] == "configuration"]
        assert {each["secret"]["name"] for each in volume["projected"]["sources"] if "secret" in each} == {
            "own"
        }


def test_tls_is_for_the_port_and_its_probes(tmp_path: Path) -> None:
    manifests = rendered(merged({"tls": {"existingSecret": "certificate"}}, WHOLE), tmp_path)
    for container in containers(manifests):
        if container.owner["kind"] == "Deployment":
            assert parse_tls(container.arguments) == ["/etc/roost-tls/tls.crt", "/etc/roost-tls/tls.key"]
            assert container.spec["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
            assert {"name": "tls", "mountPath": "/etc/roost-tls", "readOnly": True} in container.spec[
                "volumeMounts"
            ]
    [configuration] = of_kind(manifests, "ConfigMap")
    assert "conductor_endpoint = https://" in configuration["data"]["roost.conf"]


def parse_tls(arguments: list[str]) -> list[str]:
    return [arguments[arguments.index(option) + 1] for option in ("--tls-cert", "--tls-key")]


def test_a_claim_for_the_directory_of_the_dashboard(tmp_path: Path) -> None:
    manifests = rendered(merged({"dashboard": {"persistence": {"enabled": True}}}, WHOLE), tmp_path)
    [claim] = of_kind(manifests, "PersistentVolumeClaim")
    [dashboard] = [each for each in containers(manifests) if each.arguments[0] == "dashboard"]
    assert {"name": "data", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}} in (
        dashboard.pod["volumes"]
    )
    assert dashboard.owner["spec"]["strategy"] == {"type": "Recreate"}


def test_parts_may_be_left_out_and_cells_be_alone(tmp_path: Path) -> None:
    """In another cluster: the conductors of one cell, near its database."""
    values = {**WHOLE, "cells": WHOLE["cells"][:1]}
    for part in ("placement", "scheduler", "conductor", "dashboard"):
        values = merged({part: {"enabled": False}}, values)
    manifests = rendered(values, tmp_path)
    assert {each["metadata"]["name"] for each in of_kind(manifests, "Deployment")} == {"roost-cell-rack1"}


def test_values_arrive_at_oslo_config_as_they_were_written(tmp_path: Path) -> None:
    config = {
        "ledger": {"keep_commits": 123456789, "keep_days": 0.5},
        "oslo_middleware": {
            "enable_proxy_headers_parsing": True,
            "trusted_proxies": ["10.0.0.0/8", "fd00::/8"],
        },
        "placement": {"randomize_allocation_candidates": None},
    }
    url = "postgresql+psycopg://roost:a$b%40c@db.example/roost"
    manifests = rendered(merged({"config": config, "databases": {"api": url}}, ALONE), tmp_path)
    [serve] = [each for each in containers(manifests) if each.arguments[0] == "serve"]
    files = mounted(manifests, serve)
    paths = []
    for path in parse(serve.arguments).params["config_files"]:
        file = tmp_path / Path(path).name
        file.write_text(files[path])
        paths.append(str(file))
    source = Source(tuple(paths))
    options, retention = read_options(source), source.read(CommitRetention)
    assert (retention.commits, retention.days) == (123456789, 0.5)
    assert options.database is not None and options.database.parsed.password == "a$b@c"
    parser = configparser.RawConfigParser()
    parser.read(paths)
    assert "placement" not in parser
    assert parser["keystone_authtoken"]["password"] == "a$$b", "as oslo.config writes a $"


def test_a_change_of_options_restarts_pods_and_one_of_tokens_does_not(tmp_path: Path) -> None:
    def digests(changed: dict[str, Any]) -> dict[str, str]:
        found = {}
        for each in of_kind(rendered(merged(changed, WHOLE), tmp_path), "Deployment"):
            annotations = each["spec"]["template"]["metadata"]["annotations"]
            found[each["metadata"]["name"]] = annotations["roost/configuration"]
        return found

    before = digests({})
    assert digests({"tokens": WHOLE["tokens"] + "\n", "policy": {"a": "!"}}) == before
    assert not set(digests({"config": {"DEFAULT": {"debug": True}}}).values()) & set(before.values())
    after = digests({"cells": [WHOLE["cells"][0], {**WHOLE["cells"][1], "database": URL}]})
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"roost-scheduler", "roost-conductor", "roost-dashboard", "roost-cell-rack2"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "databases.api is missing"),
        ({**ALONE, "conductor": {"enabled": True}}, "databases.records is missing"),
        ({**ALONE, "secretConfig": {}}, "[api] auth_strategy is keystone"),
        ({**ALONE, "config": {"api": {"auth_strategy": "tokens"}}}, "[api] auth_strategy is tokens"),
        ({**ALONE, "existingSecret": "own"}, "databases.api and existingSecret"),
        (merged({"cells": [{"name": "rack1"}]}, WHOLE), "cell rack1: database is missing"),
        (merged({"cells": [WHOLE["cells"][0], WHOLE["cells"][0]]}, WHOLE), "there are two cells rack1"),
        (merged({"dashboard": {"ingress": {"host": ""}}}, WHOLE), "dashboard.ingress.host is missing"),
        (merged({"databases": {"api": "sqlite:///x"}}, WHOLE), "/databases/api"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_chart_refuses_what_cannot_work(values: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as refused:
        template(values, tmp_path)
    assert said in str(refused.value)
