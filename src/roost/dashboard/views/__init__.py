"""The views of pages: frozen structs, made by queries.

overview  what needs attention, capacity and use
"""
