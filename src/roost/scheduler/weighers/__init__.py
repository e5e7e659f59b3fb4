"""Weighers: which hosts are better. One file, one weigher, named ``PLUGIN``."""
