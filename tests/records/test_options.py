"""Which backend the configuration opens."""

import asyncio

import pytest
from oslo_config import cfg

from roost.records import RecordsUnavailable, open_records
from roost.records.jsonl import JsonLinesRecords
from roost.records.sql import SqlRecords


def configured(tmp_path, text: str) -> cfg.ConfigOpts:
    path = tmp_path / "roost.conf"
    path.write_text(f"[records]\n{text}")
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(path)], project="roost")
    return conf


def opened(conf):
    async def run():
        records = await open_records(conf)
        await records.close()
        return records

    return asyncio.run(run())


def test_sql_is_the_default(tmp_path):
    records = opened(configured(tmp_path, f"connection = sqlite:///{tmp_path}/r.sqlite\nretention_runs = 7"))
    assert isinstance(records.backend, SqlRecords)
    assert (records.backend.retention.days, records.backend.retention.runs) == (30.0, 7)


def test_a_file_of_lines_is_chosen_by_name(tmp_path):
    records = opened(
        configured(tmp_path, f"backend = jsonl\npath = {tmp_path}/r.jsonl\nretention_days = 0.5")
    )
    assert isinstance(records.backend, JsonLinesRecords)
    assert (records.backend.retention.days, records.backend.retention.runs) == (0.5, 1_000_000)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("backend = tape", "backend .*tape"),
        ("retention_days = -1", "retention_days is -1.0"),
        ("retention_days = nan", "retention_days is nan"),
        ("retention_days = inf", "retention_days is inf"),
        ("retention_runs = -1", "retention_runs is -1"),
        ("retention_runs = many", "retention_runs .*many"),
    ],
)
def test_a_wrong_value_is_named(tmp_path, text, says):
    with pytest.raises(RecordsUnavailable, match=rf"\[records\]: .*{says}"):
        asyncio.run(open_records(configured(tmp_path, text)))


def test_a_path_that_cannot_be_opened_is_named(tmp_path):
    conf = configured(tmp_path, f"backend = jsonl\npath = {tmp_path}/no/r.jsonl")
    with pytest.raises(RecordsUnavailable, match=r"open records file .*/no/r.jsonl: No such file"):
        asyncio.run(open_records(conf))
