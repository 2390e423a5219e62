import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

torch = pytest.importorskip("torch")
torch.set_num_threads(1)


def pytest_collection_modifyitems(items):
    from tidepool_torch import primitives
    reason = primitives.why_not()
    if reason is not None:
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))
