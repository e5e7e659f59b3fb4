"""The dashboard: pages of the fleet, its hosts, instances and decisions, and of why a request was refused.

A page is a function from a view to HTML. A view is a frozen struct, which is made by queries and is also the
JSON twin of the page. Browsers hold no fleet: the server counts.

    actions           enable, disable, drain and delete, each after a page that asks
    addresses         the addresses of all pages
    app               the application: its operations and policy rules
    asset_operations  the operation that serves files of ``assets``
    assets            style, scripts and the files of npm packages
    conventions       heads of responses, forms of errors, compression
    form              forms of pages, in queries and in bodies
    flavor_counts     how many of each flavor fit, counted one after another
    fleet             the hosts of the fleet as pages count them
    html              HTML that all pages share
    kept_views        views that many viewers share
    live              events of changes, told to all open pages
    options           the options of [dashboard]
    page              a page as an operation
    pages             views as HTML
    past              the past of the fleet, by an index of the ledger's commits
    part              the part of processes that serves the dashboard
    redecisions       recorded decisions made again, without each of their conditions
    search            the search of the navigation
    service           the parts of the process that pages read from
    session           login, sealed sessions, and checks of requests
    views             the views of pages
"""
