"""Helm, where `tools/install-helm` has installed it."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def find_helm() -> str | None:
    """The path of Helm, if it is there and runs on this machine."""
    own = ROOT / ".venv/helm/helm"
    found = str(own) if own.exists() else shutil.which("helm")
    if found is None:
        return None
    try:
        subprocess.run([found, "version"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Helm and wait for its end."""
    program = find_helm()
    assert program is not None
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
