"""What a planned step costs the host on a device with streams, a call: on "sim", whose tasks take no time
and are not run, beside plain steps in turn.

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


def _seconds(step):
    """Of processors: autograd's thread works, and other programs do not count."""
    begun = time.process_time()
    step()
    return time.process_time() - begun


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
            copies = sum(x.is_copy for x in planned.plan.instructions)
            simgpu.synchronize()
            simgpu.skip_tasks(True)

            def inside():
                with budget.step():
                    case.step(other, its_own, batches)

            plainly, within = [], []
            for _ in range(rounds):
                plainly.append(_seconds(lambda: case.step(one, its, batches)))
                within.append(_seconds(inside))
            simgpu.skip_tasks(False)
        a, b = statistics.median(plainly), statistics.median(within)
        print(f"{model} {share:.0%}: {calls} calls, {copies} copies; plain {a / calls * 1e6:.2f} us a call, "
              f"planned +{(b - a) / calls * 1e6:.2f} us")


if __name__ == "__main__":
    main()
