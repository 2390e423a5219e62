"""Runs a script without a budget and in it, and compares what both left behind each step."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile

from ..base.errors import counted, in_words

DIFFER = 5
INTERRUPTED = 130
_NAMED = 5
_KILLED = (-9, 137)  # as the kernel does when memory runs out


def verify(options, steps):
    """The exit code. The verdict goes to stdout, what the script prints to stderr."""
    runs = {}
    with tempfile.TemporaryDirectory(prefix="tidepool-verify-") as folder:
        for how in ("plain", "in the budget"):
            path = os.path.join(folder, how.replace(" ", "-"))
            code = _run({**options, "plain": how == "plain", "evidence": path, "steps": steps})
            if code != 0 or not os.path.exists(path):
                print(f"tidepool: the run {how} ended with {code}: nothing to compare"
                      + _too_large(how, code), file=sys.stderr)
                return code if code > 0 else 1
            with open(path, encoding="utf-8") as file:
                runs[how] = json.load(file)
    return _judge(runs["plain"], runs["in the budget"], steps)


def _too_large(how, code):
    if how == "plain" and code in _KILLED:
        return (". Next: it has to fit into this machine without a budget, so try it with a smaller "
                "model or batch")
    return ""


def _run(options):
    from .cli import environment, process
    child = subprocess.Popen(process(), env=environment(options), stdout=sys.stderr.fileno())
    try:
        return child.wait()
    except KeyboardInterrupt:
        # The terminal has told the script, too.
        try:
            child.wait(timeout=10)
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            child.kill()
            child.wait()
        return INTERRUPTED


def _judge(plain, inside, steps):
    if not plain["steps"] or not inside["steps"]:
        print("tidepool: the script made no step of a training that was seen: nothing to compare",
              file=sys.stderr)
        return 1
    differences = _differences(plain["steps"], inside["steps"])
    for line in differences[:_NAMED]:
        print(line)
    if len(differences) > _NAMED:
        print(f"and {len(differences) - _NAMED} more")
    if differences:
        if any("the losses differ" in line for line in differences):
            print("Next: seed the script, if it is not: two plain runs would differ too")
        return DIFFER
    print(_verdict(plain, inside, steps))
    return 0


def _differences(plain, inside):
    found = []
    if len(plain) != len(inside):
        found.append(f"{len(plain)} steps without a budget, {len(inside)} in it")
    for number, (one, other) in enumerate(zip(plain, inside), 1):
        if one["losses"] != other["losses"]:
            found.append(f"step {number}: the losses differ: {_in_digits(one['losses'])} and in the "
                         f"budget {_in_digits(other['losses'])}")
        names = {**one["digests"], **other["digests"]}
        found += [f"step {number}: {name} differs" for name in names
                  if one["digests"].get(name) != other["digests"].get(name)]
    return found


def _in_digits(losses):
    return ", ".join(f"{float.fromhex(loss):.9g}" for loss in losses)


def _verdict(plain, inside, steps):
    figures = inside["figures"]
    made = len(inside["steps"])
    tensors = len(inside["steps"][-1]["digests"]) - 1
    text = (f"equal to the last bit behind each of {counted(made, 'step')}: losses, {tensors} "
            f"tensors of model and optimizer, random state; {counted(figures['planned_steps'], 'step')} ran by a plan, "
            f"{in_words(figures['moved_out'])} moved out, {counted(figures['reruns'], 'op')} ran again")
    if figures["measured"] is not None:
        text += (f"; at most {in_words(figures['measured'])}, without a budget "
                 f"{in_words(plain['figures']['measured'])}")
    if made < steps:
        text += f"; the script ended before step {steps}"
    if (figures["unlimited_peak"] or math.inf) <= (figures["budget"] or 0):
        text += ". Nothing had to move: a step fits into the budget. Next: a smaller --peak"
    elif figures["planned_steps"] == 0:
        text += ". No step ran by a plan. Next: verify more steps"
    return text
