"""The allocator hook of the wheel: counts the bytes of large blocks, to the byte, in the process that
it is preloaded into."""

import os

_NAME = "libtidepool_torch_hook.so"


def looked_for():
    """Where the hook's file should be: named by hand, or in the wheel."""
    named = os.environ.get("TIDEPOOL_HOOK")
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return named or os.path.join(package, "lib", _NAME)


def hook_path():
    """The hook's file, or None."""
    path = looked_for()
    return path if os.path.isfile(path) else None


# PyTorch's own switch: its large blocks ask for huge pages. Blocks that come and go all the time
# fault a page at a time else, which took half as long as a GPT's step. Only with the hook, which
# counts what was asked for: the C library counts 2 MiB more for each of these blocks.
_HUGE_PAGES = "THP_MEM_ALLOC_ENABLE"


def with_hook(environment):
    """The environment of a process that has it preloaded; the same one where there is none."""
    path = hook_path()
    if path is None:
        return dict(environment)
    before = environment.get("LD_PRELOAD", "")
    return {_HUGE_PAGES: "1", **environment,
            "LD_PRELOAD": f"{path}:{before}" if before else path}


def without_hook(environment):
    """Takes it out again, for the processes that this one starts."""
    path = hook_path()
    left = [p for p in environment.get("LD_PRELOAD", "").split(":") if p and p != path]
    if left:
        environment["LD_PRELOAD"] = ":".join(left)
    else:
        environment.pop("LD_PRELOAD", None)
