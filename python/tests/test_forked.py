"""What a step under fake tensors does to anything, it does to a copy of the process."""

import copy
import os
import re
import signal
import sys
import threading
import time

import pytest
import torch

import tidepool_torch as tidepool
from tidepool_torch.recording import ahead
from tidepool_torch.base import forked
from tidepool_torch.planning.planning import machine_of
from training import bits

SLOW = {"peak": "80%", "machine": machine_of(2e7, 2e7, alignment=64), "min_bytes": 1024,
        "evaluations": 50}
X = torch.linspace(-1, 1, 256 * 64).reshape(256, 64)


class Criterion(torch.nn.Module):
    """Keeps a running mean, which it assigns anew."""

    def __init__(self):
        super().__init__()
        self.register_buffer("center", torch.zeros(64))

    def forward(self, out, y):
        with torch.no_grad():
            self.center = self.center * 0.9 + out.mean(0) * 0.1
        return ((out - self.center) - y).pow(2).mean()


class Noting(torch.nn.Module):
    """Keeps tensors in a list and a dict."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.seen, self.means = [], {}

    def forward(self, x):
        out = self.inner(x)
        self.seen.append(out.detach().mean())
        self.means["last"] = out.detach().mean()
        return out


class Everything:
    """A training with much beside the model and the optimizer."""

    def __init__(self):
        torch.manual_seed(3)
        self.model = Noting(torch.nn.Sequential(
            *(m for _ in range(6) for m in (torch.nn.Linear(64, 64), torch.nn.Tanh()))))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)
        self.average = copy.deepcopy(self.model.inner).requires_grad_(False)
        self.criterion = Criterion()
        self.parameters = list(self.model.parameters())

    def step(self):
        for parameter in self.parameters:
            parameter.grad = None
        loss = self.criterion(self.model(X), X)
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        for mean, parameter in zip(self.average.parameters(), self.model.inner.parameters()):
            mean.data = mean.data * 0.9 + parameter.data * 0.1
        return loss.detach()

    def state(self):
        model, state = self.model, self.optimizer.state_dict()
        tensors = [*self.parameters, *self.average.parameters(), self.criterion.center,
                   *model.seen, *model.means.values(),
                   *(s["momentum_buffer"] for s in state["state"].values())]
        return ([(type(t), bits(t)) for t in tensors],
                [None if p.grad is None else bits(p.grad) for p in self.parameters],
                state["param_groups"], self.scheduler.state_dict())


def test_nothing_beside_the_model_is_changed_either():
    """Scheduler, average, criterion, gradients, what modules keep in lists; lost until then."""
    training = Everything()
    training.step()
    before = training.state()
    found = tidepool.plan(training.model, training.optimizer, training.step, **SLOW)
    assert found.feasible and found.swapped_tensors + found.recomputed_ops > 0
    assert training.state() == before


def test_training_goes_on_as_if_nothing_had_been_tried():
    expected, training = Everything(), Everything()
    losses = [expected.step() for _ in range(5)]
    budget = tidepool.fit(training.model, training.optimizer, step=training.step, report=False,
                          **SLOW)
    inside = []
    for _ in range(5):
        with budget.step():
            inside.append(training.step())
    report = budget.report()
    budget.close()
    assert [bits(a) for a in inside] == [bits(a) for a in losses]
    assert training.state() == expected.state()
    assert report.planned_steps > 1 and report.moved_out + report.reruns > 0


def test_a_criterion_with_a_buffer_beside_a_sample():
    training = Everything()
    tidepool.plan(training.model, training.optimizer, sample=(X, X), loss=training.criterion, **SLOW)
    assert type(training.criterion.center) is torch.Tensor and not training.criterion.center.any()


def scaled(model, optimizer, scaler):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(X).float().pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return bits(loss)


def test_a_gradient_scaler_reads_values_and_trains_on(capsys):
    ran = []
    for is_planned in (False, True):
        training = Everything()
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        parts = training.model, training.optimizer, scaler
        if is_planned:
            budget = tidepool.fit(training.model, training.optimizer, step=lambda: scaled(*parts),
                                  **{**SLOW, "peak": "1GiB"})
            assert "no plan ahead of time: " in capsys.readouterr().err
            losses = []
            for _ in range(4):
                with budget.step():
                    losses.append(scaled(*parts))
            budget.close()
        else:
            losses = [scaled(*parts) for _ in range(4)]
        ran.append((losses, training.state(), scaler.state_dict()))
    assert ran[0] == ran[1]


def test_hooks_of_parameters_are_part_of_the_step():
    training = Everything()
    training.model.inner[0].weight.register_hook(lambda g: g * 0.5)
    training.model.inner[2].weight.register_post_accumulate_grad_hook(
        lambda p: (p.grad.mul_(2), None)[1])
    budget = tidepool.fit(training.model, training.optimizer, step=training.step, report=False,
                          **SLOW)
    with budget.step():
        training.step()
    assert budget.divergences == 0 and budget.report().planned_steps == 1
    budget.close()


def no_child_is_left():
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    return True


def refused(step, words):
    training = Everything()
    before = training.state
    state = before()
    with pytest.raises(ahead.CannotPlanAhead, match=words):
        tidepool.plan(training.model, training.optimizer, step, **SLOW)
    assert training.state() == state
    assert no_child_is_left()


def test_a_step_that_hangs_is_given_up(monkeypatch):
    """As one does that waits for a lock which another thread had while the copy was made."""
    monkeypatch.setattr(forked, "_MOST_SILENCE", 0.3)
    lock = threading.Lock()
    lock.acquire()
    refused(lock.acquire, r"did nothing for 0\.3 seconds\. Next: ")


class Listener:
    """A pipe's end whose messages are counted."""

    def __init__(self, reader, heard):
        self._reader, self._heard = reader, heard

    def poll(self, seconds):
        self._heard.append(seconds)
        return self._reader.poll(seconds)

    def recv_bytes(self):
        return self._reader.recv_bytes()


def test_signs_of_life_are_waited_for(monkeypatch):
    """Each one is followed by the whole of the time that may pass until the next."""
    heard, answer = [], forked._answer
    monkeypatch.setattr(forked, "_BEAT", 0.0)
    monkeypatch.setattr(forked, "_answer", lambda reader: answer(Listener(reader, heard)))
    training = Everything()

    def step():
        for _ in range(20):
            torch.ones(4) + 1
        training.step()

    assert tidepool.plan(training.model, training.optimizer, step, **SLOW).feasible
    assert len(heard) > 20 and set(heard) == {forked._MOST_SILENCE}


def test_a_step_that_ends_the_process_ends_the_copy():
    refused(lambda: os._exit(3), "ended without a word")
    refused(lambda: os.kill(os.getpid(), signal.SIGTERM), "ended without a word")
    refused(lambda: sys.exit(3), r"ended in a SystemExit: 3 \(test_forked.py:\d+\)")


def test_no_copy_can_be_made(monkeypatch):
    def fork():
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(os, "fork", fork)
    refused(lambda: None, "no copy of this process can be made: Cannot allocate memory")


def test_ctrl_c_ends_both():
    training = Everything()
    parent = os.getpid()

    def step():
        os.kill(os.getpid(), signal.SIGINT)  # it is for everything at the terminal
        os.kill(parent, signal.SIGINT)
        time.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        tidepool.plan(training.model, training.optimizer, step, **SLOW)
    assert no_child_is_left()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


def test_threads_of_the_process_do_not_matter():
    """Those of OpenMP, which are not there in the copy, and one of the user's."""
    training = Everything()
    stop = threading.Event()
    thread = threading.Thread(target=lambda: stop.wait(60))
    thread.start()
    torch.set_num_threads(2)
    try:
        (torch.ones(512, 512) @ torch.ones(512, 512)).exp().sum()
        training.step()  # with threads
        found = tidepool.plan(training.model, training.optimizer, training.step, **SLOW)
    finally:
        torch.set_num_threads(1)
        stop.set()
        thread.join()
    assert found.feasible


def test_what_a_step_prints_is_not_printed(capfd):
    training = Everything()

    def step():
        print("the loss is", training.step())
        os.write(2, b"the loss is there\n")

    print("before", end="")
    tidepool.plan(training.model, training.optimizer, step, **SLOW)
    out, err = capfd.readouterr()
    assert out == "before" and "the loss" not in err


def test_a_sample_of_the_wrong_shape_is_one_line(capfd):
    training = Everything()
    budget = tidepool.fit(training.model, training.optimizer, sample=(X[:, :5], X),
                          loss=torch.nn.functional.mse_loss, **SLOW)
    budget.close()
    err = capfd.readouterr().err.splitlines()
    assert re.match(r"tidepool: no plan ahead of time: .* RuntimeError: .*5.* "
                    r"\(test_forked.py:\d+\)", err[0])
    assert len(err) == 2 and "the first 2 steps run without a budget" in err[1]


def test_batches_of_worker_processes_are_not_taken():
    """In the copy they would be taken from the process, which would wait for them."""
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X), batch_size=64,
                                         num_workers=1)
    batches = iter(loader)
    training = Everything()
    took = []

    def step():
        took.append(next(batches))
        training.step()

    words = "takes a batch from a DataLoader with workers"
    with pytest.raises(ahead.CannotPlanAhead, match=words):
        tidepool.plan(training.model, training.optimizer, step, **SLOW)
    with pytest.raises(ahead.CannotPlanAhead, match=words):
        tidepool.plan(training.model, training.optimizer, lambda: list(loader), **SLOW)
    assert [len(x) for x, in batches] == [64] * 4 and not took


def test_a_child_of_fork_does_not_train_in_the_budget_of_its_parent():
    """Regression: it waited for ever for copy threads that it has not."""
    training = Everything()
    budget = tidepool.fit(training.model, training.optimizer, peak="60%", report=False,
                          evaluations=20, min_bytes=1024, machine=machine_of(1e9, 1e9))
    for _ in range(3):
        with budget.step():
            training.step()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with budget.step():
                pass
        except tidepool.TidepoolError as error:
            code = 0 if "of another process" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    with budget.step():
        training.step()
    budget.close()
