"""Trainings whose steps are not all of one shape, and one that is killed."""

import contextlib
import os
import random
import signal
import subprocess
import sys

import pytest
import torch

import models
import tidepool_torch as tidepool
from tidepool_torch.base.memory import counts, hook_is_loaded
from tidepool_torch.planning.planning import machine_of
from training import Ran, Style, body, differences, one_step, plain, state_of

STYLE = Style()
MOST_PLANS = 8


def fit(training, **more):
    settings = {"peak": "70%", "report": False, "evaluations": 30, "min_bytes": 1024,
                "machine": machine_of(2e9, 2e9, alignment=64), **more}
    return tidepool.fit(training.model, training.optimizer, **settings)


def evaluate(training, x, y):
    """Between steps, as it is without a budget."""
    training.model.eval()
    with torch.no_grad():
        value = float(training.loss(training.model, x, y))
    training.model.train()
    return value


def shortened(name, batch, size):
    """A batch of a shape that is drawn: fewer rows, or of a GPT shorter ones."""
    x, y = batch
    if name == "gpt":
        return x[:, :size].clone(), y[:, :size].clone()
    return x[:size].clone(), y[:size].clone()


def train(name, sizes, inside, **options):
    """Steps of these sizes, some in evaluation mode; what came of it and live bytes at their starts."""
    training = models.make({**models.TINY, "resnet": lambda: models.tiny_resnet(6)}[name])
    torch.manual_seed(5)
    budget = fit(training, **options) if inside else None
    losses, live, plans, report = [], [], [], None
    for n, size in enumerate(sizes):
        x, y = shortened(name, training.batch(n), size)
        live.append(counts.live())
        training.model.train(n % 5 != 3)
        with budget.step() if inside else contextlib.nullcontext():
            losses.append(body(training, [(x, y)], STYLE))
        losses.append(evaluate(training, x, y))
        plans.append(len(budget._plans) if inside else 0)
        if inside:  # what plans did that are gone is not forgotten
            before, report = report, budget.report()
            assert before is None or report.planned_steps >= before.planned_steps
    if inside:
        budget.close()
    return Ran(losses, state_of(training)), live, plans, report


SIZES = {"resnet": [6, 4, 2, 5], "gpt": [16, 12, 8, 14], "odd": [64], "generator": [64]}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", SIZES)
def test_steps_of_changing_shapes_are_exact(name, seed):
    drawn = random.Random(seed)
    sizes = [drawn.choice(SIZES[name]) for _ in range(20)]
    expected, _, _, _ = train(name, sizes, False)
    ran, _, plans, report = train(name, sizes, True)
    assert differences(expected, ran) == []
    keys = len({(size, n % 5 != 3) for n, size in enumerate(sizes)})
    assert max(plans) > 1 and max(plans) <= min(keys, MOST_PLANS)
    assert report.planned_steps > 3 and report.moved_in > 0


def test_at_most_eight_plans_are_kept_and_the_bytes_do_not_grow():
    """Twelve shapes, each four times in a row, twice."""
    if not hook_is_loaded():
        pytest.skip("the allocator hook is not preloaded")
    sizes = [size for _ in range(2) for size in range(4, 16) for _ in range(4)]
    expected, _, _, _ = train("gpt", sizes, False)
    ran, live, plans, report = train("gpt", sizes, True, peak=400_000)
    assert differences(expected, ran) == []
    assert max(plans) == MOST_PLANS
    assert report.moved_in > 0 and report.plans_let_go >= 4
    assert f"plans let go: {report.plans_let_go}" in str(report)
    behind = live[len(live) // 2:]
    assert max(behind) - min(behind) < 512 << 10


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import torch
torch.set_num_threads(1)
import models, tidepool_torch as tidepool
from torch.utils._python_dispatch import TorchDispatchMode
from tidepool_torch.planning.planning import machine_of
from training import Style, body, one_step

class KillAt(TorchDispatchMode):
    left = 60
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        KillAt.left -= 1
        if KillAt.left == 0:
            print(budget.report().moved_out, os.fstat(budget._tier.file.number).st_size, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return func(*args, **(kwargs or {{}}))

training = models.make(models.tiny_gpt)
budget = tidepool.fit(training.model, training.optimizer, peak="60%", host_dir={folder!r},
                      report=False, evaluations=50, min_bytes=1024,
                      machine=machine_of(2e9, 2e9, alignment=64))
for n in range(4):
    one_step(training, n, Style(), budget.step)
with budget.step(), KillAt():
    body(training, [training.batch(9)], Style())
"""


def test_a_killed_training_leaves_nothing_and_the_next_one_runs(tmp_path):
    script = KILLED.format(tests=os.path.dirname(__file__), folder=str(tmp_path))
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                            check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    moved, size = map(int, killed.stdout.split())
    assert moved > 0 and size > 0
    assert os.listdir(tmp_path) == []
    training = models.make(models.tiny_gpt)
    torch.manual_seed(5)
    with fit(training, host_dir=str(tmp_path)) as budget:
        losses = [one_step(training, n, STYLE, budget.step) for n in range(5)]
        assert os.listdir(tmp_path) == []
    assert budget.report().moved_in > 0
    assert differences(plain(models.tiny_gpt, 5), Ran(losses, state_of(training))) == []


def test_a_share_is_taken_of_a_whole_step(capsys):
    """The second step, which is the recorded one, has a quarter of the micro-batches."""
    parts = [4, 1, 4, 4, 4, 1, 4]

    def run(inside):
        training = models.make(models.tiny_resnet)
        torch.manual_seed(5)
        budget = fit(training, peak="70%", report=True) if inside else None
        losses = []
        for n, count in enumerate(parts):
            batches = [training.batch(10 * n + i) for i in range(count)]
            with budget.step() if inside else contextlib.nullcontext():
                loss = sum(training.loss(training.model, x, y) for x, y in batches)
                loss.backward()  # so that a whole step holds four times as much
                losses.append(float(loss.detach()))
                training.optimizer.step()
                training.optimizer.zero_grad()
        if inside:
            peak, report = budget.peak, budget.report()
            budget.close()
            assert report.moved_in > 0 and peak == int(0.7 * report.unlimited_peak)
            assert report.planned_steps >= 3
        return Ran(losses, state_of(training))

    assert differences(run(False), run(True)) == []
    assert ('tidepool: step 2 does less than one before: peak="70%" is taken of the next whole one'
            in capsys.readouterr().err.splitlines())


def test_an_average_of_weights_and_new_buckets_are_no_work_of_a_step(capsys):
    """The average copies the weights behind the first step, DDP makes buckets in the second."""
    training = models.make(models.tiny_resnet)
    average = torch.optim.swa_utils.AveragedModel(
        training.model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
    with fit(training, report=True, warm_up=2) as budget:
        for n in range(5):
            x, y = training.batch(n)
            with budget.step():
                body(training, [(x, y)], STYLE)
                if n == 1:
                    torch.zeros(1 << 20)
                average.update_parameters(training.model)
        assert budget.report().planned_steps == 2
    assert "does less" not in capsys.readouterr().err


class MakesRoom(torch.nn.Module):
    """Takes much at once, out of no tensor, where most is held."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(256, 256) for _ in range(6)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        room = torch.zeros(2048, 256)
        room[:x.shape[0]] = x.detach()
        return x * room.sum()


def test_room_is_made_for_what_comes_out_of_no_tensor():
    if not hook_is_loaded():
        pytest.skip("the allocator hook is not preloaded")

    def build():
        model = MakesRoom()
        return models.Training(model, torch.optim.SGD(model.parameters(), lr=1e-6),
                               lambda n: (torch.randn(512, 256, generator=models._seeded(n)),) * 2,
                               lambda m, x, y: (m(x) - y).square().mean())

    training = models.make(build)
    torch.manual_seed(5)
    losses, most = [], 0
    with fit(training, peak="5MiB", warm_up=100, min_bytes=65536) as budget:
        for n in range(4):
            counts.forget_highest()
            losses.append(one_step(training, n, STYLE, budget.step))
            if n > 1:  # in the first ones kernels take what they keep for good
                most = max(most, counts.highest() - budget._base)
        moved = budget._away.moved_out
    assert differences(plain(build, 4), Ran(losses, state_of(training))) == []
    assert moved > 0 and most <= 5 << 20


def test_a_batch_that_is_cut_inside_the_step_has_a_plan_for_each_size():
    def run(inside):
        training = models.make(lambda: models.tiny_resnet(6))
        torch.manual_seed(5)
        budget = fit(training, peak="80%") if inside else None
        losses = []
        for n in range(12):
            x, y = training.batch(n)
            size = (6, 4)[n % 2]
            with budget.step() if inside else contextlib.nullcontext():
                losses.append(body(training, [(x[:size], y[:size])], STYLE))
        report = budget.report() if inside else None
        if inside:
            budget.close()
        return Ran(losses, state_of(training)), report

    ran, report = run(True)
    assert differences(run(False)[0], ran) == []
    assert report.divergences == 0 and report.planned_steps >= 6 and report.moved_out > 0
