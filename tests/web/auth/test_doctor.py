"""`roost doctor` asks a real Keystone for a token."""

from pathlib import Path

from roost.bench.loopback import free_port
from roost.cli.doctor.check import Deployment, DoctorCheck, DoctorFinding, run_checks
from roost.cli.doctor.configuration import check_tokens
from roost.cli.listen_options import ListenOptions
from roost.process.option_source import Source
from roost.server.workers.listeners import Address
from support.keystone import PASSWORD, Keystone
from web.auth.conftest import configure


def test_keystone_is_asked_for_a_token(keystone: Keystone, tmp_path: Path) -> None:
    def told(source: Source) -> list[DoctorFinding]:
        return list(
            run_checks(
                [DoctorCheck("tokens", check_tokens)],
                Deployment(source, ListenOptions(Address("127.0.0.1", 1), None)),
            )
        )

    good = configure(tmp_path, keystone.url)
    assert {each.level for each in told(good)} == {"ok"}
    assert told(good)[0].says == f"Keystone at {keystone.url} accepts the credentials"
    file = Path(good.files[0])
    file.write_text(file.read_text().replace(PASSWORD, "wrong"))
    [refused] = told(good)
    assert (refused.level, "refuses the credentials" in refused.says) == ("fail", True)
    [silent] = told(configure(tmp_path, f"http://127.0.0.1:{free_port()}"))
    assert (silent.level, "start Keystone" in silent.change) == ("fail", True)
