"""The views of pages: frozen structs, made by queries.

attention  findings about what needs attention, with the pages that show more
overview   what needs attention, capacity and use
"""
