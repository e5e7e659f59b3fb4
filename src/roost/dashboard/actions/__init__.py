"""Actions: an operator enables, disables or drains a cell, a host or a node; an instance is stopped, started,
moved or deleted; a maintenance is paused, resumed or cancelled.

Each has a page that says what will happen, and changes nothing. The form of that page is sent on to the
conductor with the user's own token: its policy decides, and its event names the user.

    word               an operator's word: its subject, and the request that says it
    instance_act       the acts on an instance, and the views of their pages
    instance_act_page  these views as HTML
    maintenance_act    the acts on a maintenance, and the views of their pages
    maintenance_act_page  these views as HTML
    place              a cell, host or node as it is now
    client             requests to the conductor with the token of a user
    confirmation       the view of the page that asks before a word: what is there, and what will happen
    confirmation_page  this view as HTML
    outcome            what became of an action, and the view of the page after a word
    outcome_page       this view as HTML
    operations         the operations that carry actions out
    links              links to actions, for other pages
"""
