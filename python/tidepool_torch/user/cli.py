"""The console script tidepool-torch: `doctor`, `run`, `import` and `memory-viz`."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys

from ..base.errors import bytes_of
from ..base.hook import hook_path, looked_for, with_hook
from ..base.library import HOW_TO_INSTALL
from ..base.memory import hook_is_loaded
from ..base.nameless import NamelessFile
from ..base.version import __version__
from ..foreign import command
from ..planning import planner
from .diagnosis import findings
from .run_script import OPTIONS

# As those of the program `tidepool`.
ERROR, USAGE, BAD_INPUT = 1, 2, 3
INTERRUPTED, NOBODY_READS = 130, 141

_ENDS = """\
exit code: that of the script; where Tidepool ends it: 1 error, 2 wrong usage, 3 no such script, 4 the
budget cannot be met (the message names the smallest that can), 5 --verify found a difference,
130 interrupted, 141 nobody reads stdout any more
"""

_ABOUT = """\
Trains PyTorch models inside a byte budget, with the same results to the last bit.

examples:
  tidepool-torch doctor
  tidepool-torch run --peak 10GiB -- train.py --epochs 3
  tidepool-torch import snapshot.pickle -o step.program.json
"""

_RUN = """\
Runs a script that knows nothing of Tidepool: its trainings stay inside the budget.

A step of a training begins with the first forward pass, with gradients, of a model whose parameters an
optimizer has, and ends behind the optimizer's step(): all micro-batches of an accumulated gradient are
in it. The budget holds for what happens inside of steps; the batch, gradients and everything else that
PyTorch allocates there counts. Evaluation between steps runs as it does without Tidepool.
"""

_RUN_EXAMPLES = """\
examples:
  tidepool-torch run --peak 10GiB -- train.py --epochs 3
  tidepool-torch run --peak 60% --host-dir /var/tmp -- train.py
  tidepool-torch run --peak 10GiB -- -m package.train --epochs 3
  tidepool-torch run --peak 10GiB --verify 5 -- train.py --batch 8   # the script twice, 5 steps each
  torchrun --nproc-per-node 2 --no-python tidepool-torch run --peak 10GiB -- train.py

""" + _ENDS


def main(arguments=None):
    try:
        parsed = _parser().parse_args(arguments)
        code = parsed.do(parsed)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _without_stdout(NOBODY_READS)
    except OSError as error:
        print(f"tidepool-torch: {error}", file=sys.stderr)
        code = _without_stdout(ERROR)
    except KeyboardInterrupt:
        print("tidepool-torch: interrupted", file=sys.stderr)
        code = INTERRUPTED
    sys.exit(code)


def _without_stdout(code):
    """What could not be written is not tried again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _parser():
    as_written = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="tidepool-torch", description=_ABOUT, allow_abbrev=False,
                                     epilog=_ENDS, formatter_class=as_written)
    parser.add_argument("--version", action="version", version=f"tidepool-torch {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    doctor = commands.add_parser("doctor", help="says what is there, what is missing and what to do",
                                 epilog="exit code: 0 where models can be trained, else 1",
                                 formatter_class=as_written, allow_abbrev=False)
    doctor.add_argument("--json", action="store_true", help="one JSON object on stdout")
    doctor.set_defaults(do=_doctor)
    run = commands.add_parser("run", help="runs a script inside a budget", description=_RUN,
                              epilog=_RUN_EXAMPLES, formatter_class=as_written,
                              allow_abbrev=False,
                              usage="tidepool-torch run --peak SIZE [OPTION...] -- SCRIPT "
                                    "[ARGUMENT...]")
    _add_run_options(run)
    run.set_defaults(do=_run)
    command.add_to(commands, as_written)
    return parser


def _add_run_options(run):
    run.add_argument("--peak", required=True, metavar="SIZE", type=_peak,
                     help="bytes that a training takes at most: 10GiB, 500MB, 60%% of what it takes "
                          "without a budget, least (the smallest that works), or auto (what "
                          "this machine and its limits leave)")
    run.add_argument("--micro-batches", type=_count, metavar="N",
                     help="forward passes of the model in a step; a step that has more is cut, where "
                          "the script gives up steps on its own (default: until the optimizer steps)")
    run.add_argument("--host", metavar="SIZE", type=_size("--host"),
                     help="bytes that may have left the device (default: no limit)")
    run.add_argument("--host-dir", metavar="DIR", type=_folder,
                     help="what leaves goes to a file in this folder, which has no name")
    run.add_argument("--allow", metavar="swap,recompute", type=_allow,
                     help="what plans may do (default: both)")
    run.add_argument("--keep", metavar="NAME", action="append",
                     help="a parameter or buffer that never leaves the device; may be given again")
    run.add_argument("--no-home", action="store_true",
                     help="parameters and buffers need not be on the device between steps: smaller "
                          "budgets, but code between steps may find them away")
    run.add_argument("--min-bytes", metavar="SIZE", type=_size("--min-bytes"),
                     help="smaller tensors stay where they are (default: 64KiB)")
    run.add_argument("--planner", metavar="NAME", help="one of Tidepool's (default: auto)")
    run.add_argument("--time-limit", metavar="SECONDS", type=float,
                     help="what planning may take (default: 10)")
    run.add_argument("--evaluations", metavar="N", type=_count,
                     help="trials of the planner instead of seconds: the same plan on any machine")
    run.add_argument("--seed", metavar="N", type=int, help="of the planner (default: 1)")
    run.add_argument("--verify", metavar="N", type=_count,
                     help="run the script twice, without a budget and in it, for N optimizer steps "
                          "each, and compare losses, parameters, buffers, optimizer and random state "
                          "behind each; what the script writes it writes twice")
    run.add_argument("--report", metavar="FILE", type=_file,
                     help="write the figures of the end as JSON, too")
    run.add_argument("--quiet", action="store_true", help="no messages but errors")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- SCRIPT [ARGUMENT...]",
                     help="or `-- -m MODULE [ARGUMENT...]`")


# ---- values of options


def _size(option, also=""):
    def read(text):
        try:
            return bytes_of(int(text) if text.isdigit() else text, option)
        except ValueError as error:
            # The parser names the option.
            text = str(error).removeprefix(f"{option}=")
            raise argparse.ArgumentTypeError(text + also) from None
    return read


def _peak(text):
    if text in ("auto", "least"):
        return text
    if not text.endswith("%"):
        return _size("--peak", also=", or a share such as '60%'")(text)
    try:
        share = float(text[:-1])
    except ValueError:
        share = 0
    if not 0 < share <= 100:
        raise argparse.ArgumentTypeError(f"{text!r}: a percentage is above 0 and at most 100")
    return text


def _count(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r}: a whole number above 0")
    return int(text)


def _folder(text):
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"{text!r}: there is no such folder")
    try:
        NamelessFile(text).close()
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r}: no file can be made there: {error.strerror}. Next: another folder") from None
    return os.path.abspath(text)


def _file(text):
    """A file that can be written to, known before hours of training."""
    try:
        with open(text, "a", encoding="utf-8"):
            return os.path.abspath(text)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error.strerror}. Next: another file") from None


def _allow(text):
    parts = text.split(",")
    if set(parts) - {"swap", "recompute"}:
        raise argparse.ArgumentTypeError(f"{text!r}: swap, recompute, or swap,recompute")
    return parts


# ---- commands


def _doctor(parsed):
    found = findings()
    fit_to_train = all(f.ok for f in found if f.needed)
    if parsed.json:
        print(json.dumps({"can_train": fit_to_train,
                          "findings": [dataclasses.asdict(f) for f in found]}, indent=2))
    else:
        for finding in found:
            print(finding.line())
    return 0 if fit_to_train else ERROR


def _run(parsed):
    command = parsed.command[1:] if parsed.command[:1] == ["--"] else parsed.command
    if not command or command == ["-m"]:
        print("tidepool-torch run: no script is named. Next: tidepool-torch run --peak "
              "SIZE -- SCRIPT [ARGUMENT...]", file=sys.stderr)
        return USAGE
    if command[0] != "-m" and not os.path.isfile(command[0]):
        print(f"tidepool-torch run: there is no script {command[0]}", file=sys.stderr)
        return BAD_INPUT
    missing = [f for f in findings() if f.needed and not f.ok]
    if missing:
        for finding in missing:
            print(f"tidepool-torch run: {finding.line()}", file=sys.stderr)
        return ERROR
    try:
        planner.check_name(parsed.planner or "auto")
    except ValueError as error:
        print(f"tidepool-torch run: --{error}", file=sys.stderr)
        return USAGE
    if hook_path() is None and not hook_is_loaded() and not parsed.quiet:
        print(f"tidepool: there is no allocator hook at {looked_for()}: bytes are counted by the C "
              f"library, peaks are not exact. Next: {HOW_TO_INSTALL}; or set TIDEPOOL_HOOK to the hook",
              file=sys.stderr)
    options = {"command": command, "fit": _fit_options(parsed),
               "micro_batches": parsed.micro_batches}
    if parsed.verify is not None:
        from .verdict import verify
        return verify(options, parsed.verify)
    options["report_file"] = parsed.report
    sys.stdout.flush()
    sys.stderr.flush()
    # The same process goes on: signals, terminal and exit code are the script's.
    os.execve(sys.executable, process(), environment(options))


def process():
    """The command of a process that runs a script."""
    return [sys.executable, "-m", "tidepool_torch.user.run_script"]


def environment(options):
    made = with_hook(os.environ)
    made[OPTIONS] = json.dumps(options)
    return made


def _fit_options(parsed):
    """What was given of fit()'s arguments; the rest is as that has it."""
    given = {"peak": parsed.peak, "host": parsed.host, "host_dir": parsed.host_dir,
             "allow": parsed.allow, "keep": parsed.keep, "min_bytes": parsed.min_bytes,
             "planner": parsed.planner, "time_limit": parsed.time_limit,
             "evaluations": parsed.evaluations, "seed": parsed.seed,
             "home": False if parsed.no_home else None, "report": False if parsed.quiet else None}
    return {name: value for name, value in given.items() if value is not None}


if __name__ == "__main__":
    main()
