"""Filters: which hosts may be used. One file, one filter, named ``PLUGIN``; see
`roost.scheduler.plugins.plugins`."""
