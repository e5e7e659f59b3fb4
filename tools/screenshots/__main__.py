"""Writes the screenshots of the documents: ``python -m screenshots [FOLDER]``, by default ``docs/images``.

Exit status: 0 done, 2 could not run. Nothing is written unless all screenshots were made.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Error

from screenshots.camera import opened_browser, take_picture
from screenshots.errors import NoScreenshots
from screenshots.subjects import SUBJECTS
from support.shown_cloud.process import CloudProcess

ROOT = Path(__file__).parents[2]


def take_pictures() -> dict[str, bytes]:
    """Return all pictures, by the names of their files. Raises `NoScreenshots`."""
    # The browser comes first: it takes a second, and says at once if it is missing.
    with opened_browser() as browser, TemporaryDirectory(prefix="roost-screenshots-") as folder:
        cloud = CloudProcess(Path(folder), "screenshots.cloud", paths=[ROOT / "tools"])
        try:
            with cloud, cloud.client() as client:
                return {
                    f"dashboard-{subject.name}.png": take_picture(browser, client, cloud.origin, subject)
                    for subject in SUBJECTS
                }
        except (AssertionError, Error) as error:  # the cloud does not start, or a chart is never drawn
            raise NoScreenshots(f"the cloud cannot be pictured: {error}") from error


def main(folder: Path) -> int:
    """Write the pictures into a folder, and return the exit status."""
    try:
        pictures = take_pictures()
    except NoScreenshots as error:
        print(error, file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        path = folder / name
        changed = not path.exists() or path.read_bytes() != picture
        path.write_bytes(picture)
        print(f"{path}: {len(picture) // 1024} KiB, {'changed' if changed else 'as before'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"))
