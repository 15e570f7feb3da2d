"""Modules, and folders beside each other, that import each other; what is imported for types counts."""

from functools import cache

import grimp

# Generated, and read by type checkers alone: the classes that parts add to the client.
OF_PARTS = "jupyter_dist.client.ofparts"


@cache
def imports():
    """Map each module of the package to the modules it imports."""
    graph = grimp.build_graph("jupyter_dist", exclude_type_checking_imports=False)
    modules = graph.modules - {OF_PARTS}
    return {module: graph.find_modules_directly_imported_by(module) - {OF_PARTS} for module in modules}


def reached_from(module):
    reached, waiting = set(), [module]
    while waiting:
        for each in imports()[waiting.pop()] - reached:
            reached.add(each)
            waiting.append(each)
    return reached


def circles():
    """Return the sets of modules each of which imports, by others or itself, all others of its set."""
    reached = {module: reached_from(module) for module in imports()}
    found = {frozenset(other for other in reached[module] if module in reached[other]) for module in reached}
    return sorted((circle for circle in found if circle), key=lambda circle: (-len(circle), sorted(circle)))


def module_circles():
    """Return a line for each circle of modules."""
    return [f"{len(circle)} modules: {', '.join(sorted(circle))}" for circle in circles()]


def siblings(one, other):
    """Return the first folders in which the paths of two modules differ, or None if one of them is not in a folder there."""
    parts, others = one.split("."), other.split(".")
    shared = next((i for i, (a, b) in enumerate(zip(parts, others, strict=False)) if a != b), None)
    if shared is None:
        return None
    rooms = ".".join(parts[: shared + 1]), ".".join(others[: shared + 1])
    is_folder = all(any(module.startswith(f"{room}.") for module in imports()) for room in rooms)
    return rooms if is_folder else None


@cache
def folder_arrows():
    """Map each pair of folders beside each other to the imports from the first to the second."""
    arrows = {}
    for module, others in imports().items():
        for other in others:
            if pair := siblings(module, other):
                arrows.setdefault(pair, []).append(f"{module} -> {other}")
    return arrows


def folder_circles():
    """Return a line for each pair of folders beside each other that import each other."""
    arrows = folder_arrows()
    pairs = sorted(pair for pair in arrows if pair[::-1] in arrows and pair[0] < pair[1])
    return [f"{a} <-> {b}: {', '.join(sorted(arrows[a, b] + arrows[b, a]))}" for a, b in pairs]
