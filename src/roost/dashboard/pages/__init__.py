"""Views as HTML, one file for each page.

overview  what needs attention, capacity and use
"""
