"""The views of pages: frozen structs, made by queries.

absence      the reason why a page has nothing to show
attention    findings about what needs attention, with the pages that show more
cloud_cells  the cells and their counts, which all viewers share
host_stays   the stays of an instance on hosts, by its history
instance     one instance, with its history
instances    the list of instances
moments      times that people write
overview     what needs attention, capacity and use
"""
