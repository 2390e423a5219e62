"""Planning that goes on beside the steps, in a process of its own.

In this process the planner's own memory would count as the training's, and every step would have to
make room for it. The process reads a request from stdin and writes what came of it to stdout.
"""

import dataclasses
import json
import os
import subprocess
import sys
import threading
import time

from ..base.errors import BudgetInfeasible, TidepoolError
from ..base.hook import without_hook


_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Not by -m: this package need not be where Python looks, and is behind all that is. Without PyTorch,
# which takes seconds and hundreds of MiB.
_CHILD = ("import sys; sys.modules['torch'] = None; sys.path.append(sys.argv[1]); "
          "from tidepool_torch.planning.planned_beside import main; main()")


class PlannedBeside:
    """work(plan) makes a plan with plan(program, machine, budget, host, options), on a thread of its
    own. `done` is true when it has ended."""

    def __init__(self, work, environment):
        self._work = work
        self._environment = dict(environment)
        without_hook(self._environment)
        self._process = None
        self._stopped = False
        self._lock = threading.Lock()
        self._result = self._error = None
        self._start = time.perf_counter()
        self.seconds = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="tidepool-planning")
        self._thread.start()

    @property
    def done(self):
        return not self._thread.is_alive()

    def result(self):
        """What work() returned, or raises what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result

    def stop(self):
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()
        self._thread.join()

    def _run(self):
        try:
            self._result = self._work(self._plan)
        except BaseException as error:  # pylint: disable=broad-except
            self._error = error
        self.seconds = time.perf_counter() - self._start

    def _plan(self, program, machine, budget, host, options):
        from .planner import plan_of_text
        request = json.dumps({"program": program, "machine": machine, "budget": budget,
                              "host": host, "options": dataclasses.asdict(options)})
        with self._lock:
            if self._stopped:
                raise TidepoolError("planning was stopped")
            # In a session of its own: Ctrl-C is for the training.
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CHILD, _ROOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, env=self._environment, start_new_session=True)
        out, said = self._process.communicate(request)
        if self._process.returncode != 0:
            raise TidepoolError(f"planning ended with {self._process.returncode}: {said.strip()}")
        answer = json.loads(out)
        if "smallest" in answer:
            raise BudgetInfeasible(answer["message"], answer["smallest"])
        return plan_of_text(answer["plan"])


def main():
    from . import planner
    request = json.load(sys.stdin)
    try:
        plan = planner.plan(request["program"], request["machine"], request["budget"],
                            request["host"], planner.Options(**request["options"]))
        answer = {"plan": plan.text()}
    except BudgetInfeasible as error:
        answer = {"message": str(error), "smallest": error.smallest}
    json.dump(answer, sys.stdout)
