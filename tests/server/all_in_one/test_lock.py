"""A data directory belongs to one process at a time."""

import pytest

from roost.model.errors import OperatorError
from roost.server.all_in_one.data_directory import locked


def test_second_holder_is_refused_until_the_first_has_gone(tmp_path) -> None:
    with locked(tmp_path / "new"):
        with pytest.raises(OperatorError, match="new is in use by another roost"), locked(tmp_path / "new"):
            pass
        with locked(tmp_path / "other"):
            pass
    with locked(tmp_path / "new"):
        pass


def test_directory_that_cannot_be_used_is_named(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatorError, match="file cannot be used"), locked(tmp_path / "file"):
        pass
