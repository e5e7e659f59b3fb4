"""``roost nova-scheduler`` as a process, on a real broker."""

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


def test_the_program_answers_over_the_broker_and_ends_in_order(
    broker: RabbitMQ, cloud: NovaCloud, tmp_path: Path
) -> None:
    cloud.host("cell1", "host1")
    own = f"connection = sqlite:///{tmp_path / 'roost.db'}\n"
    config = tmp_path / "nova.conf"
    config.write_text(
        f"[DEFAULT]\nhost = here\ntransport_url = {broker.url()}\n"
        f"[api]\nauth_strategy = noauth2\n"
        f"[api_database]\nconnection = {cloud.urls['api']}\n"
        f"[database]\nconnection = {cloud.urls['cell0']}\n"
        f"[nova_bridge]\n{own}[records]\n{own}[placement_database]\n{own}"
    )
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
