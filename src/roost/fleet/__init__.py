"""The fleet: all resource providers in memory, and the search for allocation candidates among them.

Pure: no I/O, no clock, no randomness. Numpy columns in, numpy columns and model types out.

    ProviderForest       row     0     1      2      3     4
                         name    cn1   numa0  numa1  nfs   (free)
                         parent  -1    0      0      -1
                         root    0     0      0      3
    InventoryColumns     VCPU:     slot 0 is row 1, slot 1 is row 2      capacity, used, min_unit, max_unit,
    (one for each class) DISK_GB:  slot 0 is row 3                       step_size, ... by slot
    InvertedIndex        traits:      row 3 has MISC_SHARES_VIA_AGGREGATE, and that trait has rows {3}
    (two)                aggregates:  rows 0 and 3 have A1, and A1 has rows {0, 3}

    So nfs shares its disk with the tree of cn1: candidates with the anchor 0 may take DISK_GB from row 3.

Data
    fleet              the fleet: providers, server groups, assignments; changes applied and undone; forks
    fleet_data         inventories and use, traits and aggregates of providers, by provider and by tree
    provider_forest    providers and their trees
    inventory_columns  inventories and use of one resource class
    inverted_index     names by provider and providers by name, for traits and aggregates
    groups             the members of server groups, by host
    owner_usages       sums of allocations by project and user
    assigned           assignments of hardware, by node
    hardware           NUMA and PCI: the host cells, CPUs, pages and devices that guests get
    utilisation        capacity and use of each resource class, and the fullest providers
    host_levels        use of one resource class by host, as levels for maps
    rowset             a set of rows, sparse or dense
    columns            array types, columns that grow in place, and their distinct values
    invalidation_log   the rows that have changed, for caches
    fits               the rule that decides whether an amount fits an inventory
    reach              the trees that each provider may serve; whether candidates have one provider only
    work               the work of an operation, counted and limited
    errors             the errors of the fleet

Allocation candidates
    candidates         the candidates of a query
    query_terms        the terms of a query and the providers that could serve each
    match              the providers that match a request group
    tree_layout        the inputs of the search in a tree, equal for trees that are alike
    search             the depth-first search in one tree
    common_subtree     the condition ``same_subtree`` in a search
    assignments        the results of a search, shared by trees that are alike
    choices            candidates as rows, and with uuids

Feasibility, cached from one request to the next
    feasibility        the cache: the feasibility of each of the queries used last
    feasible_trees     the trees that can serve one query, brought up to date after each change
    tree_feasibility   the candidates of these trees
    tree_form          the form of a tree, equal for trees with the same parents and classes
    tree_forms         the trees of a fleet by form
    pending_trees      the trees that an evaluation of all trees has still to evaluate
    pools              the sharing providers, and the trees that they serve
    term_bits          the terms of a query, and the bits of a tree that say which providers could serve them
    position_bits      the bits of the providers at one position of trees
    tree_bits          the bits of trees of different forms, by vector operations
    tree_codes         one number for all trees with equal form, pools and bits
    tree_solution      the candidates of these trees
    term_kind          terms with equal demands, evaluated for one provider
    demanded_amounts   available amounts, rounded down to sums of demanded amounts
    splitting          amounts that several providers of one tree give together

Explanations of missing candidates
    constraint         the constraints of a query: as text, added, left out
    removals           the numbers of providers and trees that each constraint removes
    near_misses        explanations of a query: the trees that would have a candidate without one constraint

Glossary
    *row*: the number of a provider: its primary key in the tables, its index in the columns
    *slot*: the index of a provider in the inventory columns of one class
    *root*: the row of the provider at the top of a tree
    *anchor*: the root of the tree that a candidate belongs to
    *term*: a part of a query that one provider must serve
    *option*: a provider that could serve a term for some tree
    *position*: the number of a provider in its tree, by ascending row
    *pool*: a sharing provider that serves other trees than its own
    *use*: the sum of all allocations from one inventory
"""

from roost.fleet.errors import FleetError, Inconsistent, ProviderNotFound
from roost.fleet.fleet import Fleet

__all__ = ["Fleet", "FleetError", "Inconsistent", "ProviderNotFound"]
