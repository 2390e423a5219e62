"""plan(program, machine, budget) -> Plan: the one way from a recorded step to a proved plan.

The library plans in this process. With TIDEPOOL_PLANNER=process the program `tidepool` does, so
that a crash of the planner cannot end a training; the plan it writes is read, and proved anew, by
the library. Both give the same text.
"""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import tempfile

from ..base import library as lib
from ..base.errors import BudgetInfeasible, TidepoolError

_INFEASIBLE_EXIT = 4


@dataclasses.dataclass(frozen=True)
class Options:
    planner: str = "auto"
    seed: int = 1
    time_limit: float = 10.0  # seconds
    evaluations: int = 0  # 0: the time limit holds; else no clock is asked
    swap: bool = True
    recompute: bool = True
    bound: bool = False

    def may(self):
        return (lib.SWAP if self.swap else 0) | (lib.RECOMPUTE if self.recompute else 0)


class Instruction:
    """One row of the steady schedule."""

    __slots__ = ("is_copy", "stream", "op", "source", "target", "bytes", "operands", "waits",
                 "again")

    def __init__(self, row, operands, waits):
        (kind, self.stream, self.op, self.source, self.target, self.bytes, _, _, first_operand,
         operand_count, first_wait, wait_count, runs, _, _) = row
        self.is_copy = kind == 1
        self.operands = operands[first_operand:first_operand + operand_count]
        self.waits = waits[first_wait:first_wait + wait_count]
        self.again = runs > 0


class Placement:
    __slots__ = ("tensor", "on_device", "offset", "bytes")

    def __init__(self, row, arenas):
        self.tensor, space, self.offset, self.bytes = row[:4]
        self.on_device = arenas[space][0] == 0


class Plan:
    """A proved plan as the executor reads it. `lives` has (placement, first, last instruction, goes
    on into the next step)."""

    def __init__(self, handle):
        library = handle.library
        self.handle = handle
        self.info = library.describe_plan(handle)
        arenas = library.table(handle, lib.ARENAS)
        self.host_bytes = sum(size for kind, size, _ in arenas if kind != 0)
        self.placements = [Placement(row, arenas) for row in library.table(handle, lib.PLACEMENTS)]
        operands = library.table(handle, lib.OPERANDS)
        # Waits name streams and positions in them; a position is one of the whole list here.
        rows = library.table(handle, lib.INSTRUCTIONS)
        waits = library.table(handle, lib.WAITS)
        self.instructions = [Instruction(row, operands, waits) for row in rows]
        self.lives = library.table(handle, lib.LIVES)
        self.boundary = {self.placements[p].tensor: p
                         for p, in library.table(handle, lib.BOUNDARY)}
        self.copy_streams = [i for i, row in enumerate(library.table(handle, lib.STREAMS))
                             if row[1] == 1]

    def text(self):
        return self.handle.library.plan_text(self.handle)

    def export(self, form, path):
        self.handle.library.export(self.handle, form, path)


def plan_of_text(text):
    """A plan that was written elsewhere."""
    return Plan(lib.library().read("plan", text, "plan.json"))


def smallest_budget(program, machine):
    """(bytes, op that sets it) below which no plan of the program is."""
    library = lib.library()
    handle = library.read("program", json.dumps(program), "program")
    info = library.describe_program(handle, library.read("machine", json.dumps(machine), "machine"))
    return info.floor, info.floor_op


def plan(program, machine, budget, host=None, options=Options()):
    """A proved plan of a program within `budget` bytes. BudgetInfeasible, TidepoolError."""
    if by_process():
        return Plan(_planned_by_process(program, machine, budget, host, options))
    library = lib.library()
    return Plan(library.make_plan(library.read("program", json.dumps(program), "program"),
                                  library.read("machine", json.dumps(machine), "machine"),
                                  budget, host, options))


def program_path():
    """The program `tidepool`, or None."""
    return os.environ.get("TIDEPOOL_PROGRAM") or shutil.which("tidepool")


def check_name(name):
    """ValueError where there is no such planner."""
    names = lib.library().names("planners")
    if name not in names:
        raise ValueError(f"planner={name!r}: there are {', '.join(names)}")


def check(options):
    """ValueError, TidepoolError where whoever plans cannot do so under these options."""
    check_name(options.planner)
    asked = os.environ.get("TIDEPOOL_PLANNER", "")
    if asked not in ("", "process"):
        raise TidepoolError(f"TIDEPOOL_PLANNER={asked}: only `process` is known, for planning by the "
                            "program tidepool. Next: unset it; a planner is named by planner=")
    if by_process() and not options.swap:
        raise TidepoolError("TIDEPOOL_PLANNER=process: the program tidepool has no option for plans "
                            "that do not swap. Next: unset TIDEPOOL_PLANNER, or allow swap")


def by_process():
    return os.environ.get("TIDEPOOL_PLANNER") == "process"


def _planned_by_process(program, machine, budget, host, options):
    check(options)
    executable = program_path()
    if executable is None:
        raise TidepoolError("TIDEPOOL_PLANNER=process, but there is no program tidepool on PATH. "
                            "Next: set TIDEPOOL_PROGRAM to it")
    if not options.recompute and any(op["recomputable"] for op in program["ops"]):
        # The program takes it from the ops, which fit() has written so by then.
        raise TidepoolError("TIDEPOOL_PLANNER=process: plans that do not recompute need a program "
                            "whose ops are not recomputable. Next: unset TIDEPOOL_PLANNER")
    with tempfile.TemporaryDirectory(prefix="tidepool-") as folder:
        paths = {}
        for name, value in (("program", program), ("machine", machine)):
            paths[name] = os.path.join(folder, f"{name}.json")
            with open(paths[name], "w", encoding="utf-8") as file:
                json.dump(value, file)
        output = os.path.join(folder, "plan.json")
        command = [executable, "plan", "--program", paths["program"], "--machine",
                   paths["machine"], "--budget", str(budget), "--planner", options.planner,
                   "--seed", str(options.seed), "--no-cache", "-o", output]
        if host:
            command += ["--host-budget", str(host)]
        if options.evaluations:
            command += ["--evaluations", str(options.evaluations)]
        else:
            command += ["--time-limit", f"{int(options.time_limit * 1000)}ms"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == _INFEASIBLE_EXIT:
            message = done.stderr.strip()
            smallest = re.search(r"smallest feasible budget is (\d+) B", message)
            raise BudgetInfeasible(message, int(smallest.group(1)) if smallest else 0)
        if done.returncode != 0:
            raise TidepoolError(f"{' '.join(command)} ended with {done.returncode}: "
                                f"{done.stderr.strip()}")
        with open(output, encoding="utf-8") as file:
            return lib.library().read("plan", file.read(), "plan.json")
