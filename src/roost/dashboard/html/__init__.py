"""HTML that all pages share. Text is escaped by htpy; nothing here marks text as safe.

shell       the frame of a page: head, navigation, foot
icons       icons of one file
live        regions that are fetched again
error_page  the pages of errors
values      numbers, times, names and amounts as text
states      states in words, each with its mark
times       times with their weekday, and durations
places      links to hosts, cells and instances
maintenances  parts of pages about maintenances
lists       search forms, tables and the way to the next page
history     the history of an instance as a timeline
time_bar    the moment that a page shows, and the way to others
time_strip  phases of a time, as SVG
funnel      the steps of a decision as bars
request_form  the form of a request
causes      why a request is refused, and what would work
weights     the weights of hosts as stacked bars
bars        bars of use and of steps, as SVG
"""
