"""HTML that all pages share. Text is escaped by htpy; nothing here marks text as safe.

shell       the frame of a page: head, navigation, foot
icons       icons of one file
live        regions that are fetched again
error_page  the pages of errors
values      numbers, times, names and amounts as text
bars        bars of use and of steps, as SVG
"""
