"""Synthetic fleets for the map: layouts and levels as the server answers them, with a page around."""

import json
import random

from support.page_server import PageServer, Reply

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Fleet map</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="/ui/assets/favicon.svg">
<link rel="stylesheet" href="/ui/assets/roost.css"><link rel="stylesheet" href="/ui/assets/figures.css">
<script src="/ui/assets/theme.js"></script>
<script src="/ui/assets/vendor/flatbush.js" defer></script>
<script src="/ui/assets/live.js" type="module"></script>
<script src="/ui/assets/fleet_map.js" type="module"></script></head>
<body data-live="/ui/live"><main class="main wide" id="main">
<div class="page-head"><h1>Fleet map</h1>
<p class="lead"><span class="live-state" data-live-state></span></p></div>
<div class="map" data-map data-layout-url="/ui/map/layout" data-levels-url="/ui/map/levels"
 data-host-url="/ui/map/host" data-find-url="/ui/map/find">
<div class="map-bar"><form class="filter-form" data-map-form>
<div class="field"><label for="by">Colour</label>
<select id="by" name="by"><option>used</option><option>free</option></select></div>
<div class="field"><label for="class">Class</label>
<select id="class" name="class"><option>VCPU</option><option>MEMORY_MB</option></select></div></form>
<form class="filter-form" data-map-search role="search">
<div class="field"><label for="search">Find a host</label>
<input id="search" type="search" name="search"></div></form>
<div class="map-zoom">
<button class="button" type="button" data-map-action="out" aria-label="Smaller">-</button>
<button class="button" type="button" data-map-action="in" aria-label="Larger">+</button>
<button class="button" type="button" data-map-action="fit">All</button></div></div>
<div class="map-frame" tabindex="0" role="application"
 aria-label="Map of hosts: arrows choose a host, Enter opens it"></div>
<div class="map-foot"><div class="map-legend"></div><div class="map-card card" role="status"></div></div>
</div><h2>The same as a table</h2></main></body></html>"""

SCALE = {"title": "VCPU used", "ends": ["0 %", "50 %", "100 %"], "none": "no VCPU"}
TOPIC = "levels:used:VCPU"


class MapFleet:
    """A fleet whose groups have given sizes: its answers to the map's requests, and changes of its levels."""

    def __init__(self, server: PageServer, sizes: list[int], zones: int = 3, seed: int = 1) -> None:
        rng = random.Random(seed)
        self.layout = "layout-1"
        self.commit = 100
        zone_of = [f"az{1 + number * zones // len(sizes)}" if zones else "" for number in range(len(sizes))]
        self.groups = [
            {
                "zone": zone,
                "rack": f"r{number + 1:02d}",
                "cell": f"cell{1 + number % 2}",
                "count": size,
            }
            for number, (size, zone) in enumerate(zip(sizes, zone_of, strict=True))
        ]
        self.levels = bytearray()
        for size in sizes:
            mean, down = rng.uniform(4, 30), 1.0 if rng.random() < 0.004 else 0.002
            for _ in range(size):
                state = 33 if rng.random() < down else 34 if rng.random() < 0.004 else None
                self.levels.append(state or max(0, min(31, round(rng.gauss(mean, 4)))))
        server.answers["/ui/map"] = lambda _: Reply(PAGE)
        server.answers["/ui/map/layout"] = lambda _: self._json(
            {"layout": self.layout, "count": len(self.levels), "groups": self.groups}
        )
        server.answers["/ui/map/levels"] = self._answer_levels
        server.answers["/ui/map/host"] = self._answer_host
        server.answers["/ui/map/find"] = self._answer_find

    def change(self, changes: dict[int, int]) -> str:
        """Change hosts' bytes; returns the data of the event that says so."""
        self.commit += 1
        for host, value in changes.items():
            self.levels[host] = value
        return json.dumps({"layout": self.layout, "commit": self.commit, "changes": list(changes.items())})

    def _json(self, value: object) -> Reply:
        return Reply(json.dumps(value), "application/json")

    def _answer_levels(self, query: dict[str, str]) -> Reply:
        if query["layout"] != self.layout:
            return Reply(headers={"X-Roost-Layout": self.layout})
        levels = bytes(self.levels)
        if query.get("by") == "free":
            levels = bytes(31 - value if value < 32 else value for value in levels)
        headers = {
            "X-Roost-Commit": str(self.commit),
            "X-Roost-Layout": self.layout,
            "X-Roost-Topic": TOPIC.replace("used", query.get("by", "used")),
            "X-Roost-Scale": json.dumps({**SCALE, "title": f"VCPU {query.get('by', 'used')}"}),
        }
        return Reply(levels, "application/octet-stream", headers=headers)

    def _answer_host(self, query: dict[str, str]) -> Reply:
        host = int(query["index"])
        return self._json(
            {
                "name": f"compute-{host}.example.net",
                "href": f"/ui/hosts/{host}",
                "facts": [["VCPU", f"level {self.levels[host]}"], ["State", "up"]],
            }
        )

    def _answer_find(self, query: dict[str, str]) -> Reply:
        found = [host for host in range(len(self.levels)) if query["search"] in f"compute-{host}.example.net"]
        hosts = [[host, f"compute-{host}.example.net"] for host in found[:20]]
        return self._json({"hosts": hosts, "more": max(0, len(found) - 20)})
