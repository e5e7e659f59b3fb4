"""The files of TLS: the server's certificate and key, and the authority of its clients."""

from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from roost.model.errors import OperatorError


@dataclass(frozen=True)
class Tls:
    """Paths of files in PEM.

    - ``certificate``: the server's certificate, followed by those of intermediate authorities.
    - ``key``: its private key, not encrypted.
    - ``client_authority``: clients must have a certificate of one of these authorities. None: clients need
      no certificate.
    """

    certificate: Path
    key: Path
    client_authority: Path | None = None

    def check(self) -> None:
        """Check that the files can be read and fit together. Raises `OperatorError`."""
        import ssl  # only services with TLS need it

        for path in (self.certificate, self.key, self.client_authority):
            if path is not None:
                _check_readable(path)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate, self.key, password=_refuse_password)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise OperatorError(
                    f"TLS: the key {self.key} does not belong to the certificate {self.certificate}"
                ) from error
            raise OperatorError(
                f"TLS: {self.certificate} and {self.key} are not a certificate and its key in PEM: "
                f"{error.reason or error}"
            ) from error
        except _EncryptedKeyError:
            raise OperatorError(f"TLS: the key {self.key} is encrypted; use one that is not") from None
        if self.client_authority is not None:
            try:
                context.load_verify_locations(self.client_authority)
            except ssl.SSLError as error:
                raise OperatorError(
                    f"TLS: {self.client_authority} has no certificate in PEM: {error.reason or error}"
                ) from error


class _EncryptedKeyError(Exception):
    """The private key is encrypted: a password would be needed."""


def _refuse_password() -> NoReturn:
    raise _EncryptedKeyError


def _check_readable(path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise OperatorError(f"TLS: cannot read {path}: {error.strerror}") from error
