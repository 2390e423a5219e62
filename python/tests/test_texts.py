"""What a user reads at the edges, word for word."""

import contextlib
import errno
import os
import re

import pytest
import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

import models
import tidepool_torch as tidepool
from tidepool_torch.base import errors
from tidepool_torch.running import host
from tidepool_torch.planning.planning import machine_of
from training import Ran, Style, body, differences, one_step, plain, state_of

STYLE = Style()
SIZE = r"[\d.]+ (KiB|MiB|bytes)"


def fit(training, peak="60%", **more):
    settings = {"evaluations": 50, "min_bytes": 1024, "machine": machine_of(2e7, 2e7, alignment=64),
                **more}
    return tidepool.fit(training.model, training.optimizer, peak=peak, **settings)


def train(build, steps, style=STYLE, around=contextlib.nullcontext, **options):
    """Trains inside a budget, to the bits of plain training; the report."""
    training = models.make(build)
    torch.manual_seed(5)
    with fit(training, **options) as budget:
        losses = []
        for n in range(steps):
            with around():
                losses.append(one_step(training, n, style, budget.step))
    assert differences(plain(build, steps, style), Ran(losses, state_of(training))) == []
    assert budget.report().moved_in > 0
    return budget.report()


def lines(capsys):
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("options, said", [
    ({"planner": "nope"}, "planner='nope': there are auto, "),
    ({"seed": "x"}, "seed='x': a whole number"),
    ({"evaluations": -1}, "evaluations=-1: a whole number"),
    ({"time_limit": "x"}, "time_limit='x': seconds above 0"),
    ({"host_dir": 3}, "host_dir=3: the path of a folder"),
    ({"keep": "0.weight"}, "a list of names, as in keep=['0.weight']"),
    ({"optimizer": None}, "optimizer: a torch.optim.Optimizer, not a NoneType"),
    ({"optimizer": torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=1)},
     "SGD has no parameter of the model. Next: "),
])
def test_arguments_that_make_no_sense_are_named(options, said):
    model = torch.nn.Linear(4, 4)
    options = {"optimizer": torch.optim.Adam(model.parameters()), "peak": "1MiB", **options}
    with pytest.raises(ValueError, match=re.escape(said)):
        tidepool.fit(model, **options)


@pytest.mark.parametrize("text, option", [
    ("Next: a larger budget or fit(home=False)", "Next: a larger budget or --no-home"),
    ("or fit(allow=('swap',)), and", "or --allow swap, and"),
    ("Next: allow=('swap', 'recompute'), or", "Next: --allow swap,recompute, or"),
    ('exclude it: fit(..., keep=["0.weight"])', "exclude it: --keep 0.weight"),
    ("exceed host=2.0 MiB. Next: a larger host=, or host_dir= for a file",
     "exceed --host 2.0 MiB. Next: a larger --host, or --host-dir for a file"),
])
def test_under_run_advice_names_options(monkeypatch, text, option):
    assert errors.told(text) == text
    monkeypatch.setattr(errors, "_to_be_told", errors._AS_OPTIONS)
    assert errors.told(text) == option


def test_a_model_is_in_one_budget():
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.Adam(model.parameters())
    budget = tidepool.fit(model, optimizer, peak="1MiB")
    with pytest.raises(tidepool.TidepoolError, match=r"Next: close\(\) that one first"):
        tidepool.fit(model, optimizer, peak="1MiB")
    budget.close()
    tidepool.fit(model, optimizer, peak="1MiB").close()


def test_a_planner_of_the_environment_that_is_none(monkeypatch):
    monkeypatch.setenv("TIDEPOOL_PLANNER", "foo")
    model = torch.nn.Linear(4, 4)
    with pytest.raises(tidepool.TidepoolError, match="TIDEPOOL_PLANNER=foo: only `process`"):
        tidepool.fit(model, torch.optim.Adam(model.parameters()), peak="1MiB")


def too_small(training, peak, **options):
    budget = fit(training, peak=peak, report=False, **options)
    with pytest.raises(tidepool.BudgetInfeasible) as caught:
        for n in range(2):
            one_step(training, n, STYLE, budget.step)
    budget.close()
    return str(caught.value)


def test_a_budget_that_cannot_be_names_op_tensors_smallest_and_next():
    message = too_small(models.make(models.tiny_resnet), 40_000, home=False)
    assert re.fullmatch(
        rf"cannot train inside 39\.1 KiB: op \d+ \w+ needs {SIZE} at once: ([\w. ]+ {SIZE}(, |; ))+"
        rf"small tensors {SIZE} beside it; smallest budget {SIZE}"
        r"\. Next: a larger budget or a smaller batch with gradient accumulation", message), message


def test_a_budget_below_the_model_names_the_end_of_the_step():
    message = too_small(models.make(models.gpt_with(fused=True)), 60_000)
    assert re.match(r"cannot train inside 58\.6 KiB: .* needs", message)
    message = too_small(models.make(models.gpt_with(foreach=True)), 150_000)
    assert "_foreach_" in message
    assert message.endswith("Next: a larger budget, a smaller batch with gradient accumulation or an "
                            "optimizer with foreach=False")


def test_the_first_step_says_how_it_runs(capsys):
    train(models.tiny_gpt, 3, peak=400_000)
    assert lines(capsys)[0] == "tidepool: step 1 runs reactively inside 390.6 KiB"


def two_inputs():
    """A loss with a part of its own for the second input."""
    training = models.odd()
    training.loss = lambda model, x, y: model(x).square().mean() + (y * 2).sum()
    return training


def test_a_step_that_leaves_its_plan_says_where_and_why_once(capsys):
    rows = [64, 64, 64, 64, 48, 48, 64]

    def run(inside):
        training = models.make(two_inputs)
        torch.manual_seed(5)
        budget = fit(training) if inside else None
        losses = []
        for n, count in enumerate(rows):
            x, y = training.batch(n)
            with budget.step() if inside else contextlib.nullcontext():
                losses.append(body(training, [(x, y[:count])], STYLE))
        if inside:
            assert budget.divergences == 2 and budget.report().moved_in > 0
            budget.close()
        return Ran(losses, state_of(training))

    assert differences(run(False), run(True)) == []
    said = [line for line in lines(capsys) if "differs" in line]
    assert len(said) == 1
    assert re.fullmatch(r"tidepool: step 5 differs from the plan at op \d+ \(aten\.mul\.Tensor\): "
                        r"other sizes \(48, 64\) instead of \(64, 64\); running reactively", said[0])


def test_what_is_away_says_until_when_and_what_to_do():
    training = models.make(models.tiny_gpt)
    budget = fit(training, peak="45%", home=False, report=False)
    for n in range(3):
        one_step(training, n, STYLE, budget.step)
    messages = {}
    for name, parameter in training.model.named_parameters():
        try:
            parameter.data_ptr()
        except RuntimeError as error:
            messages[name] = str(error).splitlines()[0]
    ops = len(budget._plans[0].program.recording.ops)
    budget.close()
    assert messages
    for name, message in messages.items():
        found = re.fullmatch(
            rf"tidepool: {re.escape(name)} is not on the device \(planned until op (\d+)\)\. "
            r"It was read or written outside a step of its budget, or by something that PyTorch's "
            r"dispatcher does not see\. Use budget\.resident\(\), or exclude "
            rf'it: fit\(\.\.\., keep=\["{re.escape(name)}"\]\)', message)
        assert found and int(found.group(1)) < ops, message


def test_what_may_be_kept_is_kept_state_too(capsys):
    training = models.make(models.tiny_gpt)
    kept = ["tokens.weight", "layers.1.up.weight.exp_avg", "layers.0.up.weight.exp_awg"]
    with fit(training, peak="60%", keep=kept) as budget:
        for n in range(4):
            one_step(training, n, STYLE, budget.step)
        pinned = [t.name for t in budget._plans[0].program.tensors if t.pinned]
        assert {"tokens.weight", "layers.1.up.weight.exp_avg"} <= set(pinned)
    assert lines(capsys).count("tidepool: keep: nothing is called 'layers.0.up.weight.exp_awg'") == 1


class _NoZeroGrad(torch.optim.AdamW):
    """Leaves zero_grad() to whoever calls late()."""

    def zero_grad(self, set_to_none=True):
        pass

    def late(self, set_to_none):
        super().zero_grad(set_to_none)


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_of_the_last_step_are_named(capsys, to_none):
    """zero_grad() between forward and backward."""
    def build():
        training = models.tiny_gpt()
        training.optimizer = optimizer = _NoZeroGrad(training.model.parameters(), lr=1e-3)

        def loss(model, x, y, plainly=training.loss):
            value = plainly(model, x, y)
            optimizer.late(to_none)
            return value

        training.loss = loss
        return training

    train(build, 5)
    said = [line for line in lines(capsys) if "occupy" in line]
    start = "" if to_none else r"zero_grad\(set_to_none=False\) makes gradients persistent: "
    assert len(said) == 1
    assert re.fullmatch(rf"tidepool: {start}gradients of the last step occupy {SIZE} during forward; "
                        r"call optimizer\.zero_grad\(set_to_none=True\) first", said[0])


def test_lists_are_advised_against_where_something_moves(capsys):
    text = ("tidepool: AdamW has foreach=True: each of its ops goes over all parameters, gradients and "
            "states, so that what is away moves for each of them. Next: foreach=False, or fused=True")
    train(models.gpt_with(foreach=True), 4)
    assert lines(capsys).count(text) == 1
    train(models.gpt_with(fused=True), 4)
    assert text not in lines(capsys)


class OffloadActivations(saved_tensors_hooks):
    """As torchtune's and TRL's."""

    def __init__(self):
        super().__init__(lambda t: t.clone(), lambda t: t)


@pytest.mark.parametrize("hooks", [save_on_cpu, OffloadActivations])
def test_hooks_of_others_are_named_once(capsys, hooks):
    train(models.tiny_gpt, 4, around=hooks)
    text = (f"tidepool: {hooks.__name__} offloads on its own; its copies count as host memory of the "
            "process")
    assert lines(capsys).count(text) == 1


def test_checkpoints_are_no_such_hooks(capsys):
    def build():
        training = models.tiny_gpt()
        for layer in training.model.layers:
            forward = layer.forward
            layer.forward = lambda x, forward=forward: checkpoint(forward, x, use_reentrant=False)
        return training

    train(build, 4)
    assert "offloads" not in "".join(lines(capsys))


def test_a_full_disk_names_bytes_and_path(tmp_path, monkeypatch):
    tier = host.HostTier(str(tmp_path))
    tier.region(1 << 20)

    def full(file, start, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(tidepool.HostTierFull) as caught:
        tier.region(3 << 20)
    tier.close()
    assert str(caught.value) == (
        f"a file in {tmp_path} cannot have 3.0 MiB more for what leaves the device (it has 1.0 MiB): "
        "No space left on device. Next: free some of the disk, or another host_dir=")


def test_full_host_memory_names_bytes(monkeypatch):
    tier = host.HostTier(limit=2 << 20)
    tier.region(1 << 20)
    with pytest.raises(tidepool.HostTierFull) as caught:
        tier.region(3 << 20)
    assert str(caught.value) == (
        "host memory for what leaves the device is full: 3.0 MiB more than the 1.0 MiB that are taken "
        "exceed host=2.0 MiB. Next: a larger host=, or host_dir= for a file")

    def refused(*size):
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(host.mmap, "mmap", refused)
    with pytest.raises(tidepool.HostTierFull) as caught:
        tier.region(1 << 20)
    assert str(caught.value) == (
        "the system has no 1.0 MiB of memory left for what leaves the device (1.0 MiB are there): "
        "Cannot allocate memory. Next: host_dir= for a file")
    assert tier.taken == 1 << 20
