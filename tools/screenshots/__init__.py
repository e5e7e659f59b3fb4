"""Screenshots of the dashboard for the documents, whose bytes change only when a page does.

    pictured_layout ─ pictured_day ─ cloud (a process) ──▶ camera, with Chromium ──▶ docs/images

pictured_layout  the hosts of the cloud: three zones with racks, a cell each
pictured_day     what has happened in it in a day
cloud            the cloud as a process
subjects         the pages that are pictured
camera           a browser without anything that differs from run to run
fonts            the fonts in which a page is drawn
errors           why there are no screenshots

``python -m screenshots`` writes them into ``docs/images``; `make screenshots` does so. It imports from
``tests/support``, where the tests of the pages have another cloud.

The clock of the cloud and that of the browser stand still at the same time. Uuids and random numbers are
drawn from seeds. As the clock stands still, no duration is measured: a picture shows no figures of
performance; docs/benchmarks.md has these.
"""
