"""The files that pages load: their addresses, also those of imports, have the digests of the files."""

import gzip
import re

from roost.dashboard.assets import asset, asset_files


def test_scripts_import_each_other_by_addresses_that_are_kept_for_ever() -> None:
    files = asset_files()
    imported = []
    for name, file in files.items():
        if not name.startswith("vendor/") and name.endswith(".js"):
            text = file.content.decode()
            named = re.findall(
                r'(?:^import .*|^} |\bnew URL\()(?:from )?"\./([^"]+)"', text, flags=re.MULTILINE
            )
            imported += [tuple(each.split("?v=")) for each in named]
    assert {name for name, _ in imported} >= {"live_stream.js", "live_worker.js", "map_view.js"}
    assert all(files[name].digest == digest for name, digest in imported)


def test_files_are_what_their_compressed_bytes_are() -> None:
    files = asset_files()
    assert all(gzip.decompress(file.compressed) == file.content for file in files.values())
    assert asset("roost.css") == f"/ui/assets/roost.css?v={files['roost.css'].digest}"
