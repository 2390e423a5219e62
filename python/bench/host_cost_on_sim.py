"""What a planned step costs the host on a device with streams, a call: on "sim", whose tasks take no time
and are not run, beside plain steps and plain steps under a mode of PyTorch's that does nothing, in turn.

    scripts/simgpu_test.sh has the environment; python python/bench/host_cost_on_sim.py [--rounds 31]
"""

import argparse
import contextlib
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(os.path.dirname(HERE), "simgpu", "tests")]

from sim_training import PLANNING, Case, machine, plain  # noqa: E402
import simgpu  # noqa: E402
import tidepool_torch as tidepool  # noqa: E402
from tidepool_torch.running import native  # noqa: E402
from tidepool_torch.running.schedule import Action  # noqa: E402
from tidepool_torch.running.step_mode import call_it_as_it_is  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402


class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _seconds(step):
    """Of processors: autograd's thread works, and other programs do not count."""
    begun = time.process_time()
    step()
    return time.process_time() - begun


call_it_as_it_is(Passing)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=31)
    rounds = parser.parse_args().rounds
    print(f"native module: {native.find()[1]}")
    for model, share in (("gpt", 0.75), ("gpt", 0.6), ("llama", 0.6), ("resnet", 0.6)):
        case = Case(model, "fused", clip=False)
        peak = int(plain(case).peak * share)
        simgpu.policy("lazy")
        one, its = case.make()
        other, its_own = case.make()
        batches = case.batches(1)
        budget = tidepool.fit(other, its_own, peak=peak, report=False, machine=machine(), **PLANNING)
        with contextlib.closing(budget):
            for _ in range(4):
                case.step(one, its, batches)
                with budget.step():
                    case.step(other, its_own, batches)
            planned = budget._plans[0]
            calls = len(planned.executor.calls) - 1
            acts = sum(isinstance(action, Action) for _, action in planned.executor.calls)
            copies = sum(x.is_copy for x in planned.plan.instructions)
            reruns = sum(x.again for x in planned.plan.instructions if not x.is_copy)
            simgpu.synchronize()
            simgpu.skip_tasks(True)

            def inside():
                with budget.step():
                    case.step(other, its_own, batches)

            def plainly():
                case.step(one, its, batches)

            def under_a_mode():
                with Passing():
                    plainly()

            times = [[_seconds(step) for step in (plainly, under_a_mode, inside)] for _ in range(rounds)]
            simgpu.skip_tasks(False)
        plain_time, mode_time, planned_time = (
            statistics.median(t) / calls * 1e6 for t in zip(*times))
        print(f"{model} {share:.0%}: {calls} calls, {acts} that the plan acts at, {copies} copies, {reruns} "
              f"reruns; plain {plain_time:.2f} us a call, under a mode that does nothing "
              f"+{mode_time - plain_time:.2f}, planned +{planned_time - plain_time:.2f}")


if __name__ == "__main__":
    main()
