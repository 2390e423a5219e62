"""Objects in memory, found from their types.

gc.get_objects() is a list of all there are, which with a million of them is larger than many a tensor.
"""

import gc


def of_exactly(*types):
    """Objects of one of these types."""
    return [o for o in gc.get_referrers(*types) if type(o) in types]


def of_any(base):
    """Objects of a type or of one that derives from it. isinstance() would ask objects for their
    class, which some answer with work."""
    types = {base}
    ahead = [base]
    while ahead:
        fresh = set(type.__subclasses__(ahead.pop())) - types
        types |= fresh
        ahead += fresh
    return of_exactly(*types)
