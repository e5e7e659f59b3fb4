"""Certificates for tests of TLS, made by the openssl program."""

import subprocess
from pathlib import Path
from typing import NamedTuple


class Pair(NamedTuple):
    """The files of a certificate and of its key."""

    certificate: Path
    key: Path


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def make_authority(folder: Path, name: str) -> Pair:
    """Make an authority whose name is ``name``."""
    pair = Pair(folder / f"{name}.crt", folder / f"{name}.key")
    usage = ("-addext", "keyUsage=critical,keyCertSign")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", pair.key)
    _openssl("req", "-x509", *key, "-days", 2, "-subj", f"/CN={name}", *usage, "-out", pair.certificate)
    return pair


HERE = "IP:127.0.0.1,DNS:localhost"


def issue(authority: Pair, folder: Path, name: str, names: str = HERE) -> Pair:
    """Let an authority issue a certificate for ``names`` to ``name``."""
    pair = Pair(folder / f"{name}.crt", folder / f"{name}.key")
    request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
    extensions.write_text(f"subjectAltName={names}\n")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", pair.key)
    _openssl("req", *key, "-subj", f"/CN={name}", "-out", request)
    by = ("-CA", authority.certificate, "-CAkey", authority.key, "-CAcreateserial", "-days", 2)
    _openssl("x509", "-req", "-in", request, *by, "-extfile", extensions, "-out", pair.certificate)
    return pair
