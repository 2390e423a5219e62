#!/usr/bin/env python3
"""Tests of check_imports.py: one import each, and what the tool says about it."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import check_imports  # noqa: E402

ALLOWED = [
    ("running/a.py", "from ..planning import planner"),
    ("running/a.py", "from .blocks import Blocks"),
    ("running/a.py", "from . import blocks"),
    ("running/a.py", "import torch"),
    ("running/a.py", "from torch import Tensor"),
    ("running/forms.py", "from ..form_b.swap_executor import SwapExecutor"),
    ("__init__.py", "from .user.api import fit"),
    ("user/a.py", "from .. import recording, running"),
]

REFUSED = [
    ("base/a.py", "from ..running import blocks"),
    ("base/a.py", "from ..form_b.swap_executor import SwapExecutor"),
    ("foreign/a.py", "from .. import base, running"),
    ("base/a.py", "from tidepool_torch.user.api import fit"),
    ("base/a.py", "import tidepool_torch.user.api"),
    ("planning/a.py", "def f():\n    from ..running.executor import Executor"),
    ("running/a.py", "from ..form_b.swap_executor import SwapExecutor"),
    ("__init__.py", "from .running.executor import Executor"),
    ("elsewhere/a.py", "import torch"),
]


class CheckImports(unittest.TestCase):
    def found(self, path, text):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n", encoding="utf-8")
            return list(check_imports.check_file(file, Path(folder)))

    def test_allows(self):
        for path, text in ALLOWED:
            with self.subTest(path=path, text=text):
                self.assertEqual(self.found(path, text), [])

    def test_refuses(self):
        for path, text in REFUSED:
            with self.subTest(path=path, text=text):
                self.assertEqual(len(self.found(path, text)), 1)


if __name__ == "__main__":
    unittest.main()
