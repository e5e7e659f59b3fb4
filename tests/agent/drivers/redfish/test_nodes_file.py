"""What a file of nodes says, and which mistakes in it are told with their place."""

from pathlib import Path

import pytest

from roost.agent.drivers.redfish.nodes_file import BmcNodes, read_nodes_file
from roost.model.errors import OperatorError
from roost.model.names import provider_uuid

NODE = 'name = "n1"\nsystem = "1"\nresource_class = "CUSTOM_GOLD"\n'
BMC = '[[bmcs]]\nendpoint = "https://bmc1"\n'


def read(folder: Path, text: str, **environment: str) -> list[BmcNodes]:
    path = folder / "nodes.toml"
    path.write_text(text)
    return read_nodes_file(path, "rack", environment)


def test_nodes_have_what_the_file_says_for_all_or_for_them(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\nmore\n")
    [bmc] = read(
        tmp_path,
        'boot = { from = "http", url = "http://boot/{image}/{instance}" }\n'
        'cleaning = { boot = { from = "pxe" }, seconds = 60 }\n'
        f'{BMC}username = "root"\npassword_file = "{tmp_path}/password"\n'
        f"[[bmcs.nodes]]\n{NODE}"
        '[[bmcs.nodes]]\nname = "n2"\nsystem = "/redfish/v1/Systems/2"\nresource_class = "CUSTOM_GOLD"\n'
        'uuid = "11111111-1111-4111-8111-111111111111"\nboot = { from = "disk" }\ncleaning = {}\n',
    )
    first, second = bmc.nodes
    assert (first.uuid, first.system) == (provider_uuid("rack/n1"), "/redfish/v1/Systems/1")
    assert first.boot.url_for("n", "i", "a/../b") == "http://boot/a%2F..%2Fb/i"
    assert (first.cleaning.seconds, second.cleaning.boot, second.boot.source) == (60, None, "disk")
    assert (second.uuid[:8], second.system) == ("11111111", "/redfish/v1/Systems/2")
    assert bmc.password is not None and bmc.password.value == "secret"
    assert "secret" not in repr(bmc)


def test_password_of_the_environment(tmp_path: Path) -> None:
    text = f'{BMC}username = "root"\npassword_variable = "BMC"\n[[bmcs.nodes]]\n{NODE}'
    [bmc] = read(tmp_path, text, BMC="secret")
    assert bmc.password is not None and bmc.password.value == "secret"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bmcs = 1", "cannot be used: bmcs: 1 is a number, not a list"),
        (f"{BMC}[[bmcs.nodes]]\n{NODE}colour = 1", r"bmcs\[0\].nodes\[0\].colour is unknown"),
        (
            f"[[bmcs]]\nendpoint = 'ftp://b'\n[[bmcs.nodes]]\n{NODE}",
            r"bmcs\[0\]\.endpoint: ftp://b is no http",
        ),
        (f"[[bmcs]]\nendpoint = 'http://a:b@c'\n[[bmcs.nodes]]\n{NODE}", "username and password_file"),
        (f"{BMC}username = 'root'\n[[bmcs.nodes]]\n{NODE}", "password_file or password_variable is missing"),
        (f"{BMC}password_file = '/p'\n[[bmcs.nodes]]\n{NODE}", "username is missing"),
        (f"{BMC}username = 'a'\npassword_variable = 'NO'\n[[bmcs.nodes]]\n{NODE}", "NO is not set"),
        (f"{BMC}username = 'a'\npassword_file = '/no'\n[[bmcs.nodes]]\n{NODE}", "password_file: /no: "),
        (f"{BMC}[[bmcs.nodes]]\n{NODE.replace('CUSTOM_GOLD', 'GOLD')}", "GOLD is no name of a custom class"),
        (f"{BMC}[[bmcs.nodes]]\n{NODE}uuid = 'x'", "x is no uuid"),
        (f"{BMC}[[bmcs.nodes]]\n{NODE}traits = ['fast']", "fast is no name of a trait"),
        (f"{BMC}[[bmcs.nodes]]\n{NODE}boot = {{ from = 'virtual-media' }}", "boot.url is missing"),
        (f"{BMC}[[bmcs.nodes]]\n{NODE}boot = {{ url = 'http://a' }}", "has no meaning for pxe"),
        (
            f"boot = {{ from = 'http', url = 'http://{{who}}' }}\n{BMC}[[bmcs.nodes]]\n{NODE}",
            "may have {image}",
        ),
        (f"{BMC}[[bmcs.nodes]]\n{NODE}[[bmcs.nodes]]\n{NODE}", "node name n1 is there twice"),
        (
            f"{BMC}[[bmcs.nodes]]\n{NODE}[[bmcs.nodes]]\n{NODE.replace('n1', 'n2')}",
            "system https://bmc1/redfish/v1/Systems/1 is there twice",
        ),
    ],
)
def test_mistake_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(OperatorError, match=message) as refused:
        read(tmp_path, text)
    assert "nodes.toml" in str(refused.value)
