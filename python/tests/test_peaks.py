"""Budgets that are not given in bytes."""

import subprocess
import sys

import pytest
import torch

import models
import tidepool_torch as tidepool
from tidepool_torch.user import peaks
from tidepool_torch.planning.planning import machine_of
from training import Ran, Style, differences, one_step, plain, state_of

MIB = 1 << 20


def written(root, files):
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return str(root)


MEMINFO = {"proc/meminfo": f"MemTotal: 9999999 kB\nMemAvailable: {8192 << 10} kB\n"}


def less_the_reserve(size):
    return size - max(32 * MIB, int(size / 20))


def test_the_machine_alone(tmp_path):
    root = written(tmp_path, MEMINFO)
    assert peaks.allowed(root) == less_the_reserve(8192 * MIB)


def test_the_smallest_of_nested_groups(tmp_path):
    root = written(tmp_path, {
        **MEMINFO, "proc/self/cgroup": "0::/outer/inner\n",
        "sys/fs/cgroup/outer/memory.max": str(2048 * MIB),
        "sys/fs/cgroup/outer/memory.current": str(1024 * MIB),
        "sys/fs/cgroup/outer/memory.stat": f"anon 5\ninactive_file {24 * MIB}\n",
        "sys/fs/cgroup/outer/inner/memory.max": "max\n",
        "sys/fs/cgroup/outer/inner/memory.current": str(512 * MIB)})
    assert peaks.allowed(root) == less_the_reserve(1048 * MIB)


def test_groups_of_version_1_in_a_container(tmp_path):
    root = written(tmp_path, {
        **MEMINFO, "proc/self/cgroup": "4:cpu:/x\n3:memory:/docker/0123\n0::/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": str(1000 * MIB),
        "sys/fs/cgroup/memory/memory.usage_in_bytes": str(100 * MIB)})
    assert peaks.allowed(root) == less_the_reserve(900 * MIB)
    written(tmp_path, {"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"})
    assert peaks.allowed(root) == less_the_reserve(8192 * MIB)


def test_nothing_is_known_or_left(tmp_path):
    with pytest.raises(ValueError, match="does not say how much memory there is. Next: "):
        peaks.allowed(str(tmp_path))
    with pytest.raises(ValueError, match="nothing is left of the memory"):
        peaks.allowed(written(tmp_path, {"proc/meminfo": "MemAvailable: 1024 kB\n"}))


def test_a_limit_of_addresses():
    code = ("from tidepool_torch.user import peaks; import resource; "
            "taken = int(open('/proc/self/statm').read().split()[0]) * 4096; "
            "resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 30), resource.RLIM_INFINITY)); "
            "print(peaks.allowed())")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 1 << 30


def trained(peak, steps=5, **more):
    training = models.make(models.tiny_gpt)
    sizes = []
    with tidepool.fit(training.model, training.optimizer, peak=peak, min_bytes=1024, evaluations=30,
                      machine=machine_of(2e9, 2e9, alignment=64), **more) as budget:
        torch.manual_seed(5)
        losses = []
        for n in range(steps):
            losses.append(one_step(training, n, Style(), budget.step))
            sizes.append(budget.peak)
        report = budget.report()
    assert differences(plain(models.tiny_gpt, steps), Ran(losses, state_of(training))) == []
    return sizes, report


def test_the_least_is_found_and_held(capfd):
    sizes, report = trained("least")
    said = capfd.readouterr().err
    assert ('peak="least" is known when a step was recorded: the first 2 steps run without a budget. '
            "Next, where they do not fit: ") in said
    assert sizes[0] is None and sizes[1] == sizes[4]
    assert sizes[4] < 0.8 * report.unlimited_peak and report.planned_steps == 3
    with pytest.raises(tidepool.BudgetInfeasible):
        trained(sizes[4] * 3 // 4)


def test_the_least_ahead_of_time_holds_from_the_first_step(capfd):
    training = models.make(models.tiny_gpt)
    x, y = training.batch(0)
    with tidepool.fit(training.model, training.optimizer, peak="least", min_bytes=1024,
                      evaluations=30, machine=machine_of(2e9, 2e9, alignment=64), sample=(x, y),
                      loss=lambda out, y: training.loss(lambda _: out, None, y)) as budget:
        assert budget.peak is not None
        one_step(training, 0, Style(), budget.step)
        assert budget.report().planned_steps == 1
    assert "without a budget" not in capfd.readouterr().err


def test_the_least_of_larger_shapes_grows():
    training = models.make(models.tiny_gpt)
    with tidepool.fit(training.model, training.optimizer, peak="least", min_bytes=1024,
                      evaluations=30, machine=machine_of(2e9, 2e9, alignment=64),
                      report=False) as budget:
        x, y = training.batch(0)
        found = []
        for size in (4, 4, 4, 16, 16, 16, 4):
            with budget.step():
                training.loss(training.model, x[:, :size].clone(), y[:, :size].clone()).backward()
                training.optimizer.step()
                training.optimizer.zero_grad()
            found.append(budget.peak)
    assert found[2] <= found[5] == found[6]


def test_a_share_says_what_is_unlimited(capfd):
    trained("80%")
    assert 'peak="80%" is known when a step was recorded' in capfd.readouterr().err
    trained("100%")
    assert "without a budget. Next" not in capfd.readouterr().err


def test_auto_is_what_is_left_and_what_the_training_has(monkeypatch):
    monkeypatch.setattr(peaks, "allowed", lambda: 50 * MIB)
    sizes, _ = trained("auto")
    assert 50 * MIB < sizes[0] == sizes[4] < 51 * MIB
    sizes, _ = trained("auto", host=20 * MIB)
    assert 30 * MIB < sizes[0] < 31 * MIB


def test_plan_knows_both(monkeypatch):
    training = models.make(models.tiny_gpt)
    x, y = training.batch(0)
    found = {peak: tidepool.plan(
        training.model, training.optimizer, sample=(x, y), peak=peak, min_bytes=1024, evaluations=30,
        machine=machine_of(2e9, 2e9, alignment=64),
        loss=lambda out, y: training.loss(lambda _: out, None, y)) for peak in ("least", "auto")}
    least = found["least"]
    assert least.feasible and least.floor <= least.budget < 1.3 * least.floor
    assert found["auto"].feasible and found["auto"].swapped_tensors == 0
