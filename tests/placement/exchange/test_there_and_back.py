"""OpenStack Placement, Roost after an import and OpenStack Placement after an export answer the same."""

import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa

from support.databases import Servers
from support.exchange.asking import LATEST, Answer, Ours, Upstream
from support.exchange.exchanging import at, digest, exported, fleet_in, imported, prepared, verified, widen
from support.exchange.gets import ask_everything, comparable, differences
from support.exchange.rich_state import carry_on, make, uid
from support.exchange.schemas import schema_of

Answers = dict[tuple[str, str], Answer]

SOME = 3
"""On servers one path of so many is asked: what differs there is how things are stored."""

ANOMALIES = ["duplicate-aggregate", "odd-uuid", "over-capacity", "unit-violated", "unit-violated"]


@pytest.fixture(scope="module")
def said(rich_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What OpenStack Placement answers."""
    path = shutil.copy(rich_source, tmp_path_factory.mktemp("said") / "placement.db")
    with Upstream(at(path)) as upstream:
        return ask_everything(upstream)


@pytest.fixture(scope="module")
def roost(rich_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The import, to be copied."""
    path = tmp_path_factory.mktemp("import") / "roost.db"
    imported(at(rich_source), at(path))
    return path


@pytest.fixture(scope="module")
def back(roost: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The export of the import, to be copied."""
    path = tmp_path_factory.mktemp("export") / "placement.db"
    exported(at(roost), at(path))
    return path


def test_roost_answers_every_get_as_the_source(roost: Path, said: Answers, tmp_path: Path) -> None:
    with Ours(at(shutil.copy(roost, tmp_path))) as ours:
        assert differences(ask_everything(ours), said) == {}


def test_upstream_answers_every_get_from_the_export(back: Path, said: Answers, tmp_path: Path) -> None:
    with Upstream(at(shutil.copy(back, tmp_path))) as upstream:
        assert _of(said, "1.12", LATEST) == ask_everything(upstream, "1.12", LATEST)


def test_all_three_carry_on_alike(
    rich_source: Path, roost: Path, back: Path, said: Answers, tmp_path: Path
) -> None:
    found = []
    for number, (service, path) in enumerate(((Upstream, rich_source), (Ours, roost), (Upstream, back))):
        with service(at(shutil.copy(path, tmp_path / f"{number}.db"))) as asked:
            carry_on(asked)
            found.append(ask_everything(asked, LATEST))
    assert len(differences(_of(said, LATEST), found[0])) > 20
    assert differences(found[1], found[0]) == {}
    assert differences(found[2], found[0]) == {}


def test_the_tables_of_an_export_are_those_of_upstream(rich_source: Path, back: Path) -> None:
    theirs = schema_of(at(rich_source))
    assert len(theirs) == 13
    assert schema_of(at(back)) == theirs


def test_the_ledger_explains_an_import(rich_source: Path, roost: Path, tmp_path: Path) -> None:
    kinds = sorted(finding.kind for finding in verified(at(roost)))
    assert kinds == ["over-capacity", "unit-violated", "unit-violated"]
    classes = fleet_in(at(roost)).resource_classes
    with sa.create_engine(at(rich_source), poolclass=sa.NullPool).connect() as connection:
        there = connection.exec_driver_sql("SELECT name, id FROM resource_classes").all()
    assert classes == dict(map(tuple, there))


def test_the_source_is_not_touched_and_a_second_run_finds_everything(
    rich_source: Path, tmp_path: Path
) -> None:
    source = Path(shutil.copy(rich_source, tmp_path / "source.db"))
    before, roost = digest(source), at(tmp_path / "roost.db")
    first, second = imported(at(source), roost), imported(at(source), roost)
    assert digest(source) == before
    assert list(tmp_path.glob("source.db?*")) == []
    assert not second.copied.total() and second.anomalies == first.anomalies
    assert second.there_already == first.copied + first.there_already
    assert sorted(anomaly.kind for anomaly in first.anomalies) == ANOMALIES
    assert first.copied["resource classes"] == 2 and first.copied["consumers"] == 20


def test_an_export_repeats_the_doubts_and_can_come_in_again(back: Path, roost: Path, tmp_path: Path) -> None:
    again = at(tmp_path / "again.db")
    report = imported(at(back), again)
    assert sorted(anomaly.kind for anomaly in report.anomalies) == ANOMALIES
    exported_again = exported(again, at(tmp_path / "placement.db"))
    assert sorted(anomaly.kind for anomaly in exported_again.anomalies) == [
        "over-capacity",
        "unit-violated",
        "unit-violated",
    ]


def test_an_export_takes_a_database_that_was_only_prepared(
    roost: Path, said: Answers, tmp_path: Path
) -> None:
    path = tmp_path / "placement.db"
    with Upstream(at(path)) as upstream:
        assert upstream.ask("GET", "/resource_providers").body == {"resource_providers": []}
    exported(at(roost), at(path))
    with Upstream(at(path)) as upstream:
        for asked in (
            "/traits",
            "/resource_classes",
            "/resource_providers",
            f"/allocations/{uid('consumer-0')}",
        ):
            assert comparable(upstream.ask("GET", asked)) == said[LATEST, asked]


@pytest.mark.parametrize("kind", [pytest.param("postgresql", marks=pytest.mark.nightly), "mariadb"])
def test_there_and_back_on(kind: str, servers: Servers, tmp_path: Path) -> None:
    with (
        servers.place(kind, tmp_path) as source,
        servers.place(kind, tmp_path) as roost,
        servers.place(kind, tmp_path) as back,
    ):
        if kind == "mariadb":
            for place in (source, back):
                widen(place.url)
        with Upstream(source.url) as upstream:
            make(upstream)
            said = ask_everything(upstream, LATEST, every=SOME)
        report = imported(source.url, prepared(roost.url))
        assert [anomaly for anomaly in report.anomalies if anomaly.kind not in ANOMALIES] == []
        assert {finding.kind for finding in verified(roost.url)} == {"over-capacity", "unit-violated"}
        exported(roost.url, back.url)
        assert schema_of(back.url) == schema_of(source.url)
        with Ours(roost.url) as ours:
            assert _known(differences(ask_everything(ours, LATEST, every=SOME), said)) == {}
            carry_on(ours)
            after = ask_everything(ours, LATEST, every=SOME)
        with Upstream(back.url) as upstream:
            # The ids that the database generates follow those of the export.
            carry_on(upstream)
            assert _known(differences(after, ask_everything(upstream, LATEST, every=SOME))) == {}


def _of(answers: Answers, *versions: str) -> Answers:
    return {key: answer for key, answer in answers.items() if key[0] in versions}


def _known(different: dict[tuple[str, str], tuple[Answer, Answer]]) -> dict[tuple[str, str], object]:
    """Remove answers that OpenStack Placement itself gets wrong: some usages on PostgreSQL."""
    return {
        key: answers
        for key, answers in different.items()
        if not (answers[1].status == 500 and key[1].startswith("/usages"))
    }


def test_a_root_that_is_reported_is_the_trees_top(roost: Path) -> None:
    fleet = fleet_in(at(roost))
    child = fleet.row(uid("late child"))
    assert fleet.uuid(fleet.root.item(child)) == uid("host-2")
    assert child > fleet.row(uid("host-2-pci"))
