"""libtidepool by its C interface (tidepool.h, which says what each call promises)."""

import ctypes
import os
import sys

from .errors import BudgetInfeasible, TidepoolError

ABI = 1
OK, RUNTIME, USAGE, BAD_INPUT, INFEASIBLE, CHECK_FAILED, STOPPED = range(7)
SWAP, RECOMPUTE, ALGORITHMS = 1, 2, 4
(INSTRUCTIONS, ENTRY, EXIT, OPERANDS, WAITS, PLACEMENTS, LIVES, STREAMS, ARENAS, BOUNDARY,
 DECISIONS) = range(11)

_i32, _i64 = ctypes.c_int32, ctypes.c_int64
_text, _handle = ctypes.c_char_p, ctypes.c_void_p


class _Sized(ctypes.Structure):
    """A struct that begins with its size, as tidepool.h wants it."""

    def __init__(self, **fields):
        super().__init__(size=ctypes.sizeof(type(self)), **fields)


class _ErrorInfo(_Sized):
    _fields_ = [("size", ctypes.c_size_t), ("status", ctypes.c_int), ("message", _text),
                ("smallest", _i64), ("of_host", _i32), ("op", _i32)]


class _ProgramInfo(_Sized):
    _fields_ = [("size", ctypes.c_size_t), ("ops", _i64), ("tensors", _i64), ("gaps", _i64),
                ("peak", _i64), ("floor", _i64), ("floor_op", _i32), ("compute", _i64)]


class _Budget(_Sized):
    _fields_ = [("size", ctypes.c_size_t), ("device", _i64), ("host", _i64),
                ("addresses_do_not_count", _i32)]


_progress = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_double, _text)


class _Options(_Sized):
    _fields_ = [("size", ctypes.c_size_t), ("planner", _text), ("seed", ctypes.c_uint64),
                ("time_limit", _i64), ("evaluation_limit", _i64), ("may", ctypes.c_uint32),
                ("prove_gap", _i32), ("stop", ctypes.POINTER(_i32)), ("progress", _progress),
                ("user", ctypes.c_void_p), ("settings", _text)]


class _PlanInfo(_Sized):
    _fields_ = [("size", ctypes.c_size_t)] + [(name, _i64) for name in (
        "device_bytes", "host_bytes", "file_bytes", "load", "time", "compute", "unlimited", "bound",
        "swapped_tensors", "swapped_out", "copied_out", "copied_in", "recomputed_ops",
        "written_to_file", "plan_time", "check_time")] + [
            ("streaming", _i32), ("stopped", _i32), ("planner", _text), ("notes", _text)]


def _places():
    """Where the library may lie: named by hand, in the wheel, where the system looks."""
    named = os.environ.get("TIDEPOOL_LIBRARY")
    if named:
        return [named]
    beside = os.path.join(os.path.dirname(os.path.dirname(__file__)), "lib", "libtidepool.so.1")
    return [beside, "libtidepool.so.1"]


HOW_TO_INSTALL = ("install the wheel: in Tidepool's source `make torch-wheel`, then `pip install "
                  "build/wheel/tidepool_torch-*.whl`")


class Library:
    def __init__(self):
        tried = []
        for place in _places():
            try:
                self._c = ctypes.CDLL(place)
                self.path = place
                break
            except OSError as error:
                tried.append(str(error))
        else:
            raise TidepoolError(
                "libtidepool.so.1 was not found (" + "; ".join(tried) + "). Next: set "
                f"TIDEPOOL_LIBRARY to it, or {HOW_TO_INSTALL}")
        if self._c.tp_abi() != ABI:
            raise TidepoolError(
                f"{self.path} has interface {self._c.tp_abi()}, this package needs {ABI}. Next: "
                "install both of one version")
        self._c.tp_version.restype = _text
        for free in ("tp_program_free", "tp_machine_free", "tp_plan_free"):
            getattr(self._c, free).argtypes = (_handle,)
            getattr(self._c, free).restype = None

    def version(self):
        return self._c.tp_version().decode()

    def names(self, what):
        """Of all "planners", "machines" or "formats" that there are."""
        lines = _text()
        self._do("tp_list", what.encode(), ctypes.byref(lines))
        return lines.value.decode().split()

    def read(self, what, text, name):
        """A handle of a "program", "machine" or "plan" from JSON."""
        made = _handle()
        data = text.encode()
        self._do(f"tp_{what}_read", data, ctypes.c_size_t(len(data)), name.encode(),
                 ctypes.byref(made))
        return _Handle(self, what, made)

    def describe_program(self, program, machine):
        info = _ProgramInfo()
        self._do("tp_program_describe", program.value, machine.value, ctypes.byref(info))
        return info

    def make_plan(self, program, machine, budget, host, options):
        made = _handle()
        limit = _Budget(device=budget, host=host or 0)
        settings = _Options(
            planner=options.planner.encode(), seed=options.seed,
            time_limit=int(options.time_limit * 1e9), evaluation_limit=options.evaluations,
            may=options.may(), prove_gap=int(options.bound))
        self._do("tp_plan_make", program.value, machine.value, ctypes.byref(limit),
                 ctypes.byref(settings), ctypes.byref(made))
        return _Handle(self, "plan", made)

    def describe_plan(self, plan):
        info = _PlanInfo()
        self._do("tp_plan_describe", plan.value, ctypes.byref(info))
        return info

    def plan_text(self, plan):
        text, length = _text(), ctypes.c_size_t()
        self._do("tp_plan_text", plan.value, ctypes.byref(text), ctypes.byref(length))
        return text.value.decode()

    def table(self, plan, which):
        """Rows of integers."""
        cells = ctypes.POINTER(_i64)()
        rows, columns = ctypes.c_size_t(), ctypes.c_size_t()
        self._do("tp_plan_table", plan.value, ctypes.c_int(which), ctypes.byref(cells),
                 ctypes.byref(rows), ctypes.byref(columns))
        flat = cells[:rows.value * columns.value]
        width = columns.value
        return [tuple(flat[i * width:(i + 1) * width]) for i in range(rows.value)]

    def export(self, plan, form, path):
        self._do("tp_plan_export", plan.value, form.encode(), os.fsencode(path))

    def free(self, handle):
        getattr(self._c, f"tp_{handle.what}_free")(handle.value)

    def _do(self, function, *arguments):
        if getattr(self._c, function)(*arguments) == OK:
            return
        error = _ErrorInfo()
        self._c.tp_error(ctypes.byref(error))
        message = (error.message or b"").decode()
        if error.status == INFEASIBLE:
            raise BudgetInfeasible(message, error.smallest)
        raise TidepoolError(message)


class _Handle:
    def __init__(self, library, what, value):
        self.library = library
        self.what = what
        self.value = value

    def __del__(self):
        # At the interpreter's end the module's own names go first.
        if self.value and sys is not None and not sys.is_finalizing():
            self.library.free(self)


_library = None


def library():
    """The library, loaded when it is first asked for. TidepoolError where it is not to be had."""
    global _library
    if _library is None:
        _library = Library()
    return _library
