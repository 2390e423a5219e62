"""Swaps the bytes of storages where torch has no function for it: by storage_swap.cpp, built for the torch
that is installed.

A build is looked for in the package, then in the cache; else one is made with the system's compiler, in
some ten seconds, once. TIDEPOOL_STORAGE_SWAP names one.
"""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch

_HERE = os.path.dirname(os.path.abspath(__file__))
_SOURCE = os.path.join(_HERE, "storage_swap.cpp")
_NAME = f"libtidepool_storage_swap_{torch.__version__.replace('+', '_')}"

_c = None


def _cached():
    with open(_SOURCE, "rb") as file:
        key = hashlib.sha256(file.read()).hexdigest()[:8]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "tidepool", f"{_NAME}_{key}.so")


def at_hand():
    """The path of a build for this torch, or None."""
    asked = os.environ.get("TIDEPOOL_STORAGE_SWAP")
    for path in [asked] if asked else [os.path.join(_HERE, f"{_NAME}.so"), _cached()]:
        if os.path.exists(path):
            return path
    return None


def build():
    """Builds it into the cache; its path. RuntimeError with the compiler's words."""
    path, root = _cached(), os.path.dirname(torch.__file__)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
            made = os.path.join(folder, "made.so")
            command = [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-fPIC", "-shared", _SOURCE,
                       "-o", made, f"-I{root}/include", f"-L{root}/lib", "-lc10",
                       f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                lines = [l for l in done.stderr.splitlines() if "error" in l] or ["the compiler failed"]
                raise RuntimeError(f"{_SOURCE} does not compile against torch {torch.__version__}: "
                                   f"{lines[0]}")
            os.replace(made, path)
    except OSError as error:
        raise RuntimeError(f"{_SOURCE} cannot be built ({error}). Next: install a C++ compiler (g++)"
                           ) from None
    return path


def _load(path):
    c = ctypes.PyDLL(path)
    c.tidepool_swap.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    c.tidepool_say_away.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
    c.tidepool_say_here.argtypes = (ctypes.c_void_p,)
    return c


def find():
    """Makes it ready. None, or why it cannot be, in words."""
    global _c  # pylint: disable=global-statement
    if _c is None:
        try:
            _c = _load(at_hand() or build())
        except (RuntimeError, OSError, AttributeError) as error:
            return str(error)
    return None


def swap(storage, other):
    if _c.tidepool_swap(storage._cdata, other._cdata):
        raise RuntimeError("storages of other sizes or devices do not swap their bytes")


def say_away(storage, text):
    _c.tidepool_say_away(storage._cdata, text.encode())


def say_here(storage):
    _c.tidepool_say_here(storage._cdata)
