"""Actions: an operator enables, disables or drains a cell, a host or a node; an instance is deleted.

Each has a page that says what will happen, and changes nothing. The form of that page is sent on to the
conductor with the user's own token: its policy decides, and its event names the user.

    word               an operator's word: its subject, and the request that says it
    place              a cell, host or node as it is now
    client             requests to the conductor with the token of a user
    confirmation       the views of the pages that ask: what is there, and what will happen
    confirmation_page  these views as HTML
    outcome            the views of the pages after it: what was done, and the event that records it
    outcome_page       these views as HTML
    operations         the operations that carry actions out
    links              links to actions, for other pages
"""
