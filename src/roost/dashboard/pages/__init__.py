"""Views as HTML, one file for each page.

absence    the reason in place of a page's content
decision   one decision
decisions  the list of decisions
instance   one instance, with its history
instances  the list of instances
overview   what needs attention, capacity and use
"""
