"""The manifests for Kubernetes: valid, whole, locked down, and with commands and options that Roost has."""

import configparser
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

import roost
from install.containerfile import instructions
from install.manifests import (
    CHART,
    FOLDER,
    RENDERING,
    Container,
    containers,
    mounted,
    of_kind,
    parse,
    read,
)
from roost.cli import programs
from roost.cli.configuration import options_without_effect
from roost.process.option_source import Source
from roost.server.options import read_conducting_options, read_scheduling_options
from roost.web.health import HealthOptions

NAMES: list[str] = RENDERING["NAMES"]
MANIFESTS = {name: read((FOLDER / f"{name}.yaml").read_text()) for name in NAMES}
CONTAINERS = [
    pytest.param(name, container, id=f"{name}-{container.label}")
    for name in NAMES
    for container in containers(MANIFESTS[name])
]
OF_THE_OPERATOR = {"ServiceMonitor"}
"""Kinds that Kubernetes itself does not have."""
CHART_FACTS = yaml.safe_load((CHART / "Chart.yaml").read_text())
OLDEST = CHART_FACTS["kubeVersion"].removeprefix(">=").removesuffix("-0")

each_manifest = pytest.mark.parametrize("name", NAMES)
each_container = pytest.mark.parametrize(("name", "container"), CONTAINERS)


def serving(name: str) -> list[Container]:
    return [each for each in containers(MANIFESTS[name]) if each.owner["kind"] == "Deployment"]


def matches(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return bool(selector) and selector.items() <= labels.items()


def test_there_are_manifests_of_placement_alone_and_of_everything() -> None:
    assert NAMES == ["placement", "whole"]
    commands = {name: {each.arguments[0] for each in serving(name)} for name in NAMES}
    assert commands == {
        "placement": {"serve"},
        "whole": {"serve", "scheduler", "conductor", "cell-conductor", "dashboard"},
    }


@each_manifest
def test_a_manifest_is_made_from_the_chart_as_it_is(name: str) -> None:
    head = (FOLDER / f"{name}.yaml").read_text().splitlines()[2]
    assert head == f"# {RENDERING['digest'](name)}", "the chart was changed: run tools/render-manifests"


@each_manifest
@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
def test_kubernetes_accepts_every_object(name: str, version: str) -> None:
    for each in MANIFESTS[name]:
        if each["kind"] not in OF_THE_OPERATOR:
            kubernetes_validate.validate(each, version, strict=True)


@each_manifest
def test_no_object_is_there_twice_and_none_is_a_hook_of_helm(name: str) -> None:
    objects = [(each["kind"], each["metadata"]["name"]) for each in MANIFESTS[name]]
    assert len(objects) == len(set(objects))
    assert "helm.sh" not in (FOLDER / f"{name}.yaml").read_text()


@each_manifest
def test_every_reference_is_to_something_that_is_there(name: str) -> None:
    manifests = MANIFESTS[name]
    pods = [each["spec"]["template"] for each in of_kind(manifests, "Deployment", "Job")]
    accounts = {each["metadata"]["name"] for each in of_kind(manifests, "ServiceAccount")}
    assert {pod["spec"]["serviceAccountName"] for pod in pods} == accounts
    for deployment in of_kind(manifests, "Deployment"):
        selector = deployment["spec"]["selector"]["matchLabels"]
        [pod] = [each for each in pods if matches(selector, each["metadata"]["labels"])]
        assert pod == deployment["spec"]["template"]
    services = of_kind(manifests, "Service")
    for service in services:
        behind = [pod for pod in pods if matches(service["spec"]["selector"], pod["metadata"]["labels"])]
        ports = [port for pod in behind for port in pod["spec"]["containers"][0].get("ports", ())]
        for port in service["spec"]["ports"]:
            assert {"name": port["targetPort"], "containerPort": port["port"]} in ports
    for guarded in of_kind(manifests, "PodDisruptionBudget", "NetworkPolicy"):
        selector = guarded["spec"].get("selector", guarded["spec"].get("podSelector"))["matchLabels"]
        assert len([pod for pod in pods if matches(selector, pod["metadata"]["labels"])]) == 1
    for ingress in of_kind(manifests, "Ingress"):
        backend = ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
        [service] = [each for each in services if each["metadata"]["name"] == backend["name"]]
        assert backend["port"]["name"] in {port["name"] for port in service["spec"]["ports"]}
    for monitor in of_kind(manifests, "ServiceMonitor"):
        [service] = [
            each
            for each in services
            if matches(monitor["spec"]["selector"]["matchLabels"], each["metadata"]["labels"])
        ]
        assert monitor["spec"]["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}


@each_container
def test_a_command_is_one_of_roost_and_its_files_are_mounted(name: str, container: Container) -> None:
    context = parse(container.arguments)
    files = mounted(MANIFESTS[name], container)
    assert context.params["config_files"] and set(context.params["config_files"]) <= set(files)
    unused = set(files) - set(context.params["config_files"])
    assert unused <= {"/etc/roost/tokens.toml", "/etc/roost/policy.yaml"}


PORTS = {
    "serve": programs.PLACEMENT_PORT,
    "scheduler": programs.SCHEDULER_PORT,
    "conductor": programs.CONDUCTOR_PORT,
    "cell-conductor": programs.CELL_PORT,
    "dashboard": programs.DASHBOARD_PORT,
}


@each_manifest
def test_ports_are_the_defaults_of_the_commands(name: str) -> None:
    for container in serving(name):
        context = parse(container.arguments)
        ports = {port["name"]: port["containerPort"] for port in container.spec["ports"]}
        assert context.params["port"] == PORTS[container.arguments[0]] == ports["http"]
        assert context.params["metrics_port"] == ports["metrics"]
        assert context.params["host"] == context.params["metrics_host"] == "0.0.0.0"


def configured(name: str, container: Container, folder: Path) -> tuple[Source, dict[str, str]]:
    """The configuration that a container reads, and the databases in it: section -> URL."""
    files = []
    databases = {}
    texts = mounted(MANIFESTS[name], container)
    for path in parse(container.arguments).params["config_files"]:
        file = folder / Path(path).name
        file.write_text(texts[path])
        files.append(str(file))
        parser = configparser.RawConfigParser()
        parser.read(file)
        databases |= {
            each: parser[each]["connection"] for each in parser.sections() if "connection" in parser[each]
        }
    return Source(tuple(files)), databases


@each_container
def test_every_option_of_the_files_has_an_effect(name: str, container: Container, tmp_path: Path) -> None:
    source, _ = configured(name, container, tmp_path)
    strategy = "tokens" if name == "whole" else "keystone"
    assert options_without_effect(source, strategy, schedules=True) == []


@each_manifest
def test_a_process_has_the_databases_that_it_needs_and_no_others(name: str, tmp_path: Path) -> None:
    cells = {"cell0", "cell_rack1", "cell_rack2"}
    for container in serving(name):
        source, urls = configured(name, container, tmp_path)
        databases = set(urls)
        command, *words = container.arguments
        if command == "serve":
            assert databases == {"placement_database"}
        elif command == "cell-conductor":
            assert databases == {"placement_database", "api_database", "records", f"cell_{words[0]}"}
            assert read_conducting_options(source, words[0]).cell_database is not None
        else:
            assert databases == {"placement_database", "api_database", "records", *cells}
            assert read_scheduling_options(source).api_database is not None


@each_manifest
def test_every_database_is_upgraded(name: str, tmp_path: Path) -> None:
    jobs = [each for each in containers(MANIFESTS[name]) if each.owner["kind"] == "Job"]
    upgraded = [parse(each.arguments).params for each in jobs]
    assert all(each["rolling"] for each in upgraded), "processes may run meanwhile"
    named = {each for container in serving(name) for each in configured(name, container, tmp_path)[1]}
    assert {each["section"] for each in upgraded} == named


@each_container
def test_a_container_is_locked_down(name: str, container: Container) -> None:
    """The profile "restricted" of Kubernetes, and more."""
    pod, security = container.pod["securityContext"], container.spec["securityContext"]
    [user] = [each.value for each in instructions() if each.name == "USER"]
    assert f"{pod['runAsUser']}:{pod['runAsGroup']}" == user and pod["runAsNonRoot"] is True
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert security["readOnlyRootFilesystem"] is True and security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert container.pod["automountServiceAccountToken"] is container.pod["enableServiceLinks"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(container.pod)
    kinds = {kind for volume in container.pod["volumes"] for kind in volume if kind != "name"}
    assert kinds <= {"emptyDir", "projected", "secret", "persistentVolumeClaim"}
    assert {"/tmp", "/etc/roost"} <= {mount["mountPath"] for mount in container.spec["volumeMounts"]}
    assert set(container.spec["resources"]) == {"requests", "limits"}


@each_manifest
def test_probes_leave_the_time_that_roost_takes(name: str) -> None:
    for container in serving(name):
        probes = {kind: container.spec[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness")}
        paths = {kind: probe["httpGet"]["path"] for kind, probe in probes.items()}
        assert paths == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
        assert probes["readiness"]["timeoutSeconds"] > HealthOptions().check_seconds
        assert probes["startup"]["periodSeconds"] * probes["startup"]["failureThreshold"] == 15 * 60
        pause = container.spec["lifecycle"]["preStop"]["sleep"]["seconds"]
        drained = parse(container.arguments).params["drain_seconds"]
        assert pause + drained < container.pod["terminationGracePeriodSeconds"]


@each_manifest
def test_two_pods_of_each_component_survive_a_node_but_there_is_one_dashboard(name: str) -> None:
    budgets = of_kind(MANIFESTS[name], "PodDisruptionBudget")
    assert all(each["spec"]["maxUnavailable"] == 1 for each in budgets)
    guarded = {each["metadata"]["name"] for each in budgets}
    for deployment in of_kind(MANIFESTS[name], "Deployment"):
        replicas = 1 if deployment["metadata"]["name"].endswith("dashboard") else 2
        assert deployment["spec"]["replicas"] == replicas
        assert (deployment["metadata"]["name"] in guarded) is (replicas > 1)


def test_metrics_are_scraped_under_the_name_that_the_alerts_know() -> None:
    [monitor] = of_kind(MANIFESTS["whole"], "ServiceMonitor")
    assert {"targetLabel": "job", "replacement": "roost"} in monitor["spec"]["endpoints"][0]["relabelings"]
    [service] = [
        each for each in of_kind(MANIFESTS["whole"], "Service") if each["spec"].get("clusterIP") == "None"
    ]
    assert service["spec"]["publishNotReadyAddresses"] is True, "an alert says that a process is not ready"
    [deployment] = of_kind(MANIFESTS["placement"], "Deployment")
    assert deployment["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"] == "9778"


def test_the_image_is_that_of_this_version() -> None:
    assert CHART_FACTS["appVersion"] == roost.__version__
    images = {each.spec["image"] for name in NAMES for each in containers(MANIFESTS[name])}
    assert images == {f"roost:{roost.__version__}"}
