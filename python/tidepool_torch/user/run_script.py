"""The process of `tidepool-torch run`, in which a script runs.

python -m tidepool_torch.user.run_script OPTIONS...

What to do comes as JSON in the variable TIDEPOOL_RUN; the script sees neither it nor the allocator
hook in its environment.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
import types

from ..base.errors import speak_of_options, told
from ..base.hook import without_hook

OPTIONS = "TIDEPOOL_RUN"
INTERRUPTED = 130


def main():
    options = json.loads(os.environ.pop(OPTIONS))
    without_hook(os.environ)
    try:
        code = run(options)
    except KeyboardInterrupt:
        print("tidepool: interrupted before the script began, or behind it", file=sys.stderr)
        code = INTERRUPTED
    sys.exit(code)


def run(options):
    """The exit code of the script, or Tidepool's own where it ended the script."""
    from .cutting import Cutter
    speak_of_options()
    from .verifying import Evidence, NoBudget
    evidence = None
    if options.get("evidence") is not None:
        evidence = Evidence(options["evidence"], options["steps"])
    make = NoBudget if options.get("plain") else _budget_maker(options["fit"])
    cutter = Cutter(make, options.get("micro_batches"), evidence and evidence.note)
    cutter.install()
    if evidence is not None:
        evidence.watch_losses()
    code = _ended(options["command"], cutter)
    if evidence is not None:
        evidence.write(cutter)
        return code
    return _report(cutter, options) or code


def _budget_maker(options):
    from .api import fit

    def make(model, optimizers):
        return fit(model, optimizers, **options)

    return make


def _ended(command, cutter):
    """Runs the script to its end, whichever it is; its exit code."""
    from .cutting import Refused, exit_code
    from ..base.errors import BudgetInfeasible, HostTierFull
    from .verifying import Enough
    try:
        _run_script(command)
        return 0
    except Enough:
        return 0
    except Refused as error:
        cutter.failed = True
        cutter.leave()
        print(f"tidepool: {told(str(error.error))}", file=sys.stderr)
        return error.code
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        cutter.failed = True
        cutter.leave()
        print(f"tidepool: interrupted in step {cutter.steps + 1}", file=sys.stderr)
        return INTERRUPTED
    except (BudgetInfeasible, HostTierFull) as error:
        cutter.leave()
        print(f"tidepool: {told(str(error))}", file=sys.stderr)
        return exit_code(error)
    except BaseException as error:  # pylint: disable=broad-except
        cutter.failed = True
        cutter.leave()
        _print_as_python_does(error)
        return 1


def _print_as_python_does(error):
    """Without the frames that run the script."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__,
                                                                      "<frozen runpy>"):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace or error.__traceback__)


def _run_script(command):
    """As `python SCRIPT ARGS` and `python -m MODULE ARGS` do."""
    if command[0] == "-m":
        sys.argv = command[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        return
    path = command[0]
    sys.argv = list(command)
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    # Not by runpy.run_path, which clears the script's names when it ends.
    script = types.ModuleType("__main__")
    script.__file__ = path
    script.__builtins__ = __builtins__
    sys.modules["__main__"] = script
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    exec(code, script.__dict__)  # pylint: disable=exec-used


def _report(cutter, options):
    """0, or 1 where the file could not be written."""
    from .run_report import RunReport
    report = RunReport(cutter)
    if options["fit"].get("report", True):
        for line in report.lines():
            print(f"tidepool: {line}", file=sys.stderr)
    path = options.get("report_file")
    if path is None:
        return 0
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(report.figures(), file, indent=2)
            file.write("\n")
        return 0
    except OSError as error:
        print(f"tidepool: the figures could not be written to {path}: {error.strerror}",
              file=sys.stderr)
        return 1


if __name__ == "__main__":
    main()
