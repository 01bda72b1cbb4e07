"""Entity tables of a few titles."""

import numpy as np

from ontology.classes import ClassTree
from ontology.titles import title_keys
from ontology.voting.building import Facts, build


def table_of(classes):
    """The entity table of titles and their classes, which one file states."""
    names = sorted(set(classes.values()))
    keys = title_keys(classes)
    nothing = Facts(keys, [], np.full(len(keys), -1, np.int32))
    indices = np.array([names.index(name) for name in classes.values()], np.int32)
    return build(nothing, [Facts(keys, names, indices)], ClassTree.shipped()).table
