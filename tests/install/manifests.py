"""The manifests of packaging/kubernetes: their objects, and the files and commands of their containers."""

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import yaml

from roost.cli.main import roost_command

ROOT = Path(__file__).parents[2]
CHART = ROOT / "packaging/helm/roost"
FOLDER = ROOT / "packaging/kubernetes"
RENDERING = runpy.run_path(str(ROOT / "tools/render-manifests"))
"""The functions of the tool that makes the manifests."""

Manifest = dict[str, Any]


class Container(NamedTuple):
    """A container. ``owner``: the Deployment or Job that has it; ``pod``: the spec of its pod."""

    owner: Manifest
    pod: Manifest
    spec: Manifest

    @property
    def label(self) -> str:
        return f"{self.owner['metadata']['name']}/{self.spec['name']}"

    @property
    def arguments(self) -> list[str]:
        return list(self.spec["args"])


def read(text: str) -> list[Manifest]:
    """The objects of a manifest."""
    return [each for each in yaml.safe_load_all(text) if each is not None]


def of_kind(manifests: list[Manifest], *kinds: str) -> list[Manifest]:
    return [each for each in manifests if each["kind"] in kinds]


def containers(manifests: list[Manifest]) -> Iterator[Container]:
    """The containers of all pods, those that initialise a pod first."""
    for owner in of_kind(manifests, "Deployment", "Job"):
        pod = owner["spec"]["template"]["spec"]
        for spec in (*pod.get("initContainers", ()), *pod["containers"]):
            yield Container(owner, pod, spec)


def parse(arguments: list[str]) -> click.Context:
    """Parse the arguments of a container, as the image's entry point does; return its context."""
    command: click.Command | None = roost_command
    words = list(arguments)
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), words.pop(0))
    assert command is not None, f"no such command: {arguments}"
    return command.make_context(command.name, words)


def mounted(manifests: list[Manifest], container: Container) -> dict[str, str]:
    """The files of ConfigMaps and Secrets that a container sees: path -> text.

    Raises `KeyError` for one that is missing.
    """
    texts = {
        (each["kind"].lower(), each["metadata"]["name"]): each.get("data", {}) | each.get("stringData", {})
        for each in of_kind(manifests, "ConfigMap", "Secret")
    }
    volumes = {each["name"]: each for each in container.pod["volumes"]}
    found = {}
    for mount in container.spec["volumeMounts"]:
        for source in volumes[mount["name"]].get("projected", {}).get("sources", ()):
            [(kind, chosen)] = source.items()
            files = texts[kind.lower(), chosen["name"]]
            paths = {item["key"]: item["path"] for item in chosen.get("items", ())} or {
                key: key for key in files
            }
            found |= {f"{mount['mountPath']}/{path}": files[key] for key, path in paths.items()}
    return found
