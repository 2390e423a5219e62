import os
import signal
import sys

import pytest

# A shell starts what runs in its background with Ctrl-C ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

try:
    import torch
    torch.set_num_threads(1)
except ImportError:
    torch = None


def _needs_torch(path):
    return not os.path.basename(path).startswith("test_foreign_")


def pytest_ignore_collect(collection_path):
    """Without PyTorch there is nothing but traces of others to test."""
    name = collection_path.name
    return True if torch is None and name.startswith("test_") and _needs_torch(name) else None


# What form B does too. The other files are about what it lacks, or use what old torches have not.
SERVED_BY_B = {"test_form_b.py", "test_host.py", "test_reading.py", "test_stops.py",
               "test_swap_executor.py"}


def pytest_collection_modifyitems(items):
    if torch is None:
        return
    from tidepool_torch.base import primitives
    reason = primitives.why_not()
    for item in items:
        if not _needs_torch(item.path):
            continue
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))
        elif primitives.FORM == "B" and item.path.name not in SERVED_BY_B:
            item.add_marker(pytest.mark.skip(reason="form A's test; this torch has form B"))
