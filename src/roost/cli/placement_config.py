"""The source of the options of a placement service: its command line, or upstream's environment variable."""

import os
from pathlib import Path

from roost.process.option_source import Setting, Source


def placement_source(config_files: tuple[str, ...], settings: tuple[str, ...]) -> Source:
    """Return the source of options that ``--config-file`` and ``--set`` make.

    Without a file it is the one in the folder that upstream's OS_PLACEMENT_CONFIG_DIR names, if that is set.

    Raises:
        OperatorError: A setting has a wrong form.
    """
    folder = os.environ.get("OS_PLACEMENT_CONFIG_DIR", "").strip()
    default = (str(Path(folder) / "placement.conf"),) if folder else ()
    files = tuple(str(Path(each).expanduser()) for each in config_files or default)
    return Source(files, tuple(Setting.parse(each) for each in settings))
