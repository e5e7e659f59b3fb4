"""Nova's provider trees."""

import copy

from nova.compute.provider_tree import ProviderTree


def play(operations):
    """Carry out operations on trees. Returns what each gave, and the state of all trees at the end.

    An operation is ``[tree, method, arguments]``. ``copy`` and ``subtree`` add a tree to those that there
    are; the first one is empty at first.
    """
    trees = [ProviderTree()]
    return [_outcome(trees, *each) for each in operations], [_state(tree) for tree in trees]


def _outcome(trees, which, method, arguments):
    tree = trees[which % len(trees)]
    try:
        if method == "copy":
            trees.append(copy.deepcopy(tree))
        elif method == "subtree":
            trees.append(tree.subtree(*arguments))
        elif method == "update_resources":
            name, things = arguments
            return tree.update_resources(name, {key: set(each) for key, each in things.items()})
        elif method == "data":
            return _plain(tree.data(*arguments))
        else:
            return getattr(tree, method)(*arguments)
    except (ValueError, KeyError) as error:
        return type(error).__name__
    return None


def _state(tree):
    return [_plain(tree.data(uuid)) for uuid in tree.get_provider_uuids()]


def _plain(data):
    things = {name: sorted(each) for name, each in data.resources.items()}
    return [*data[:5], sorted(data.traits), sorted(data.aggregates), things]


def methods():
    """The names of the methods that a tree has."""
    return [name for name, each in vars(ProviderTree).items() if callable(each) and not name.startswith("_")]
