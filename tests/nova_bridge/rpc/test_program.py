"""``roost nova-scheduler`` as a process, on a real broker."""

import datetime
import signal
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from roost.nova.database.tables import services
from roost.nova.rpc.oslo import oslo_messaging
from support.nova_clients import SchedulerClient
from support.nova_clouds import NovaCloud
from support.nova_specs import request_spec
from support.programs import Program
from support.rabbitmq import RabbitMQ
from support.waiting import Deadline


def configured(broker: RabbitMQ, cloud: NovaCloud, tmp_path: Path) -> Path:
    own = f"connection = sqlite:///{tmp_path / 'roost.db'}\n"
    config = tmp_path / "nova.conf"
    config.write_text(
        f"[DEFAULT]\nhost = here\nreport_interval = 1\ntransport_url = {broker.url()}\n"
        f"[api]\nauth_strategy = noauth2\n"
        f"[api_database]\nconnection = {cloud.urls['api']}\n"
        f"[database]\nconnection = {cloud.urls['cell0']}\n"
        f"[nova_bridge]\n{own}[records]\n{own}[placement_database]\n{own}"
    )
    return config


def test_the_program_answers_over_the_broker_and_ends_in_order(
    broker: RabbitMQ, cloud: NovaCloud, tmp_path: Path
) -> None:
    cloud.host("cell1", "host1")
    config = configured(broker, cloud, tmp_path)
    with Program(tmp_path, "nova-scheduler", config=config) as program:
        until = Deadline(60)
        while program.client.get("/readyz").status_code != 200:
            assert not until.passed, program.said()
            time.sleep(0.1)
        with SchedulerClient(broker.url()) as client, pytest.raises(oslo_messaging.RemoteError) as raised:
            client.select("155d900f-4e14-4e4c-a73d-069cbf4541e7", spec_obj=request_spec())
        assert raised.value.exc_type == "NoValidHost"
        query = sa.select(services).where(services.c.host == "here")
        with cloud.engines["cell0"].connect() as connection:
            [row] = connection.execute(query)
            assert (row.binary, row.topic, row.disabled) == ("nova-scheduler", "scheduler", False)
            assert row.last_seen_up is not None
        assert program.end() == 0, program.said()
        with cloud.engines["cell0"].connect() as connection:
            [row] = connection.execute(query)
            assert row.last_seen_up is None
        assert "Traceback" not in program.said()


def test_a_taken_name_ends_the_program_though_it_could_not_be_checked_at_the_start(
    broker: RabbitMQ, cloud: NovaCloud, tmp_path: Path
) -> None:
    config = configured(broker, cloud, tmp_path)
    services.drop(cloud.engines["cell0"])
    with Program(tmp_path, "nova-scheduler", config=config) as program:
        until = Deadline(60)
        while "written later" not in program.said():
            assert not until.passed, program.said()
            time.sleep(0.1)
        with cloud.engines["cell0"].begin() as connection:
            services.create(connection)
            row = {"host": "here", "binary": "nova-scheduler", "topic": "scheduler", "report_count": 1}
            seen = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
            connection.execute(sa.insert(services).values(**row, last_seen_up=seen, deleted=0))
        while program.process.poll() is None:
            assert not until.passed, program.said()
            cloud.write("cell0", sa.update(services).values(report_count=services.c.report_count + 100))
            time.sleep(0.2)
        assert "its name is taken" in program.said()


def test_the_row_is_kept_up_over_a_reload(broker: RabbitMQ, cloud: NovaCloud, tmp_path: Path) -> None:
    config = configured(broker, cloud, tmp_path)
    query = sa.select(services.c.report_count, services.c.last_seen_up).where(services.c.host == "here")

    def reports() -> int:
        with cloud.engines["cell0"].connect() as connection:
            row = connection.execute(query).one_or_none()
        return 0 if row is None or row.last_seen_up is None else int(row.report_count)

    with Program(tmp_path, "nova-scheduler", config=config) as program:
        until = Deadline(60)
        while not reports():
            assert not until.passed, program.said()
            time.sleep(0.1)
        before = reports()
        program.process.send_signal(signal.SIGHUP)
        for reached in (
            lambda: "all workers have the new configuration" in program.said(),
            # Before it ends, the replaced worker may report once more, or say that the row is another's.
            lambda: reports() > before + 3,
        ):
            # A busy machine may have taken most of the time for what came before.
            until = Deadline(60)
            while not reached():
                assert not until.passed, program.said()
                time.sleep(0.1)
        assert "ERROR" not in program.said()
