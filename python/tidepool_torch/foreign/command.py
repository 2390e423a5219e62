"""`tidepool-torch import` and `tidepool-torch memory-viz`; neither needs PyTorch."""

import argparse
import json
import sys

from ..base.errors import TidepoolError
from . import FORMATS, BadTrace, NoSuchStep, import_trace

_ERROR, _USAGE, _BAD_INPUT = 1, 2, 3

_IMPORT = """\
Makes a program file of a recorded trace: a CUDA memory snapshot (torch.cuda.memory._dump_snapshot(), a
pickle or JSON), a trace of the PyTorch profiler with profile_memory=True, a PyTorch execution trace
(ExecutionTraceObserver), or an operator log of DTR; also packed with gzip. What it can be used for, and
what was assumed where the file says nothing, is printed.
"""

_IMPORT_EXAMPLES = """\
examples:
  tidepool-torch import snapshot.pickle -o placement.json
  tidepool-torch import resnet50.pt.trace.json.gz --step 18 -o placement.json
  tidepool plan --program placement.json --machine gtx1080ti --budget 10GiB    # the arena it needs
  tidepool-torch import execution_trace.json -o step.json
  tidepool plan --program step.json --machine gtx1080ti --budget 70%           # with swaps

exit code: 1 OUT.json cannot be written, 2 wrong usage or no such step, 3 a file that is no such trace
"""

_MEMORY_VIZ = """\
Draws a plan as a memory snapshot that https://pytorch.org/memory_viz shows: each tensor at its address in
the arena, from where it is needed until it is not. budget.export("snapshot.pickle") writes the same.
"""

_MEMORY_VIZ_EXAMPLES = """\
examples:
  tidepool plan vgg16 --budget 60% --machine gtx1080ti -o plan.json
  tidepool-torch memory-viz plan.json -o snapshot.pickle

exit code: 1 no libtidepool, or SNAPSHOT.pickle cannot be written, 2 wrong usage, 3 a file that is no plan
"""


_NO_PLAN = 'Next: a file that `tidepool plan -o` or budget.export("x.plan.json") wrote'


def _output(text):
    if text == "-":
        raise argparse.ArgumentTypeError("the name of a file; stdout has the summary")
    return text


def add_to(commands, formatter):
    """Adds both to the commands of a parser."""
    one = commands.add_parser("import", help="makes a program file of a recorded trace",
                              description=_IMPORT, epilog=_IMPORT_EXAMPLES,
                              formatter_class=formatter, allow_abbrev=False)
    one.add_argument("file", metavar="FILE")
    one.add_argument("-o", "--output", metavar="OUT.json", required=True, type=_output)
    one.add_argument("--format", choices=FORMATS, help="default: what the file looks like")
    one.add_argument("--step", type=int, metavar="K",
                     help="number of a step that the file marks (default: the last one, of an "
                          "execution trace the last that another follows)")
    one.add_argument("--json", action="store_true", help="the summary as one JSON object")
    one.set_defaults(do=_import)
    two = commands.add_parser("memory-viz", help="draws a plan file for PyTorch's memory_viz",
                              description=_MEMORY_VIZ, epilog=_MEMORY_VIZ_EXAMPLES,
                              formatter_class=formatter, allow_abbrev=False)
    two.add_argument("file", metavar="PLAN.json")
    two.add_argument("-o", "--output", metavar="SNAPSHOT.pickle", required=True,
                     type=_output)
    two.set_defaults(do=_memory_viz)


def _import(parsed):
    try:
        made = import_trace(parsed.file, format=parsed.format, step=parsed.step)
    except BadTrace as error:
        return _failed("import", error, _USAGE if isinstance(error, NoSuchStep) else _BAD_INPUT)
    try:
        made.write(parsed.output)
    except OSError as error:
        return _failed("import", f"{parsed.output}: {error.strerror}", _ERROR)
    if parsed.json:
        print(json.dumps({**made.as_dict(), "written": parsed.output}, indent=2))
    else:
        print(made)
        print(f"written: {parsed.output}. Next: tidepool info {parsed.output}")
    return 0


def _memory_viz(parsed):
    from ..base.library import library
    from ..planning.memory_viz import write_snapshot
    try:
        with open(parsed.file, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        return _failed("memory-viz", f"{parsed.file}: {error}. {_NO_PLAN}", _BAD_INPUT)
    try:
        loaded = library()
    except TidepoolError as error:
        return _failed("memory-viz", error, _ERROR)
    try:
        write_snapshot(loaded.read("plan", text, parsed.file), parsed.output)
    except TidepoolError as error:
        return _failed("memory-viz", f"{parsed.file} is no plan: {error}. {_NO_PLAN}", _BAD_INPUT)
    except OSError as error:
        return _failed("memory-viz", f"{parsed.output}: {error.strerror}", _ERROR)
    print(f"written: {parsed.output}. Next: open it at https://pytorch.org/memory_viz")
    return 0


def _failed(command, message, code):
    print(f"tidepool-torch {command}: {message}", file=sys.stderr)
    return code
