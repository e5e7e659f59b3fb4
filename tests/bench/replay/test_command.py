"""`roost replay`: figures, faults of a trace, and data directories that are not its own."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.processes import run_roost

FLAVORS = ["2,4 a", "4,16 b"]
INTERVALS = ["0 0", "600 1", "3600 2"]
ARRIVALS = ["0 a,a,|,b,|", "300 b,|", "600 a,|"]
ENDS = ["0 U0,U1,|,C2,|", "300 U0,|", "600 C1,|"]
FILES = {
    "flav_map.txt": FLAVORS,
    "v1.interval_map.txt": INTERVALS,
    "v1.dev.txt": ARRIVALS,
    "v1.dev.c2100000.txt": ENDS,
}


@pytest.fixture
def trace(tmp_path) -> Path:
    """A tiny trace in Azure's form."""
    directory = tmp_path / "trace"
    directory.mkdir()
    for name, lines in FILES.items():
        (directory / name).write_text("\n".join(lines) + "\n")
    return directory


def replay(trace: Path, data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_roost(
        "replay", "azure-v1", trace, "--data-dir", data, "--hosts", "3", "--cells", "2", *arguments
    )


def test_cells_may_be_more_than_hosts(trace: Path, tmp_path: Path) -> None:
    ended = replay(trace, tmp_path / "data", "--hosts", "1", "--cells", "4", "--no-plot", "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["differences"] == []


def refused(answer: subprocess.CompletedProcess[str], *words: object) -> None:
    """It could not run, and said why in one line with these words."""
    assert answer.returncode == 2, answer.stderr
    assert answer.stdout == ""
    assert answer.stderr.count("\n") == 1, answer.stderr
    for word in words:
        assert str(word) in answer.stderr


@pytest.fixture
def pods(tmp_path: Path) -> Path:
    """A tiny trace in the form of openb: two GPUs, and a pod that leaves."""
    folder = tmp_path / "openb"
    folder.mkdir()
    nodes = "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,65536,2,T4\n"
    (folder / "openb_node_list_all_node.csv").write_text(nodes)
    columns = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time"
    (folder / "openb_pod_list_default.csv").write_text(f"{columns}\np1,1000,512,1,500,,LS,Running,0,10\n")
    return folder


def test_gpus_of_openb_are_filled_unless_pods_come_and_go_as_recorded(pods: Path, tmp_path: Path) -> None:
    def replayed(*arguments: str) -> dict[str, Any]:
        done = run_roost(
            "replay", "openb", pods, "--cells", "1", "--data-dir", tmp_path / "data", "--json", *arguments
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    filled = replayed()
    assert (filled["asked"], filled["placed"], filled["peak_use"]["CUSTOM_GPU_MILLI"]) == (6, 4, 1.0)
    recorded = replayed("--as-recorded")
    assert (recorded["asked"], recorded["placed"]) == (1, 1)
    both = run_roost("replay", "openb", pods, "--as-recorded", "--inflate", "2")
    assert both.returncode == 2 and "--inflate and --as-recorded exclude each other" in both.stderr


def test_trace_is_replayed_to_its_end(trace, tmp_path) -> None:
    done = replay(trace, tmp_path / "data", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["requests"], summary["asked"], summary["placed"]) == (4, 5, 5)
    assert (summary["departures"], summary["unaccounted"]) == (3, 0)
    assert (tmp_path / "data" / "replay.png").read_bytes().startswith(b"\x89PNG")
    again = replay(trace, tmp_path / "data", "--failure-rate", "1")
    assert again.returncode == 0, again.stderr
    assert "failed on every host tried" in again.stdout, "a finished replay is replaced"


@pytest.mark.parametrize(
    ("name", "line", "text", "words"),
    [
        ("v1.dev.txt", 2, "300 c,|", ["flavor letter", "'c'"]),
        ("v1.dev.txt", 2, "30O b,|", ["start second", "'30O'"]),
        ("v1.dev.txt", 3, "500 a,|", ["v1.dev.c2100000.txt:3", "has a bin that starts at 500 here: 600"]),
        ("v1.dev.c2100000.txt", 1, "0 U0,U9,|,C2,|", ["'U9'"]),
        ("flav_map.txt", 1, "2;4 a", ["'2;4 a'"]),
        ("v1.interval_map.txt", 3, "3600", ["'3600'"]),
    ],
)
def test_line_that_is_wrong_is_named_and_nothing_is_written(trace, tmp_path, name, line, text, words) -> None:
    lines = FILES[name].copy()
    lines[line - 1] = text
    (trace / name).write_text("\n".join(lines) + "\n")
    refused(replay(trace, tmp_path / "data"), *words)
    assert not (tmp_path / "data").exists()


def test_trace_that_is_not_there_is_named(trace, tmp_path) -> None:
    (trace / "v1.dev.txt").unlink()
    refused(replay(trace, tmp_path / "data"), trace / "v1.dev.txt", "No such file")
    assert not (tmp_path / "data").exists()


def test_directory_of_something_else_is_refused_and_left_alone(trace, tmp_path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "api.db").write_text("precious")
    refused(replay(trace, data, "--fresh"), data, "api.db", "not of a replay")
    assert (data / "api.db").read_text() == "precious"

    (data / "replay.json").write_text('{"parameters": {"workload": "other"}, "next_bin": 2}')
    refused(replay(trace, data), data, "unfinished replay", "workload other and not azure", "--fresh")
    (data / "replay.json").write_text("nonsense")
    refused(replay(trace, data), data / "replay.json")
    assert (data / "api.db").read_text() == "precious"


def test_data_directory_that_is_a_file_is_named(trace, tmp_path) -> None:
    (tmp_path / "file").write_text("precious")
    refused(replay(trace, tmp_path / "file"), tmp_path / "file", "cannot be used")
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize(
    ("arguments", "compares"),
    [((), True), (("--inflate", "2"), False), (("--hosts", "1"), False), (("--nodes", "gpu"), False)],
)
def test_only_a_replay_as_published_is_compared_with_published_shares(
    pods: Path, tmp_path: Path, arguments: tuple[str, ...], compares: bool
) -> None:
    (pods / "openb_node_list_gpu_node.csv").write_bytes((pods / "openb_node_list_all_node.csv").read_bytes())
    done = run_roost(
        "replay", "openb", pods, "--cells", "1", "--no-plot", "--data-dir", tmp_path / "data", *arguments
    )
    assert done.returncode == 0, done.stderr
    assert "GPU allocation: " in done.stdout
    assert ("all nodes" in done.stdout) == compares
