"""What must not be computed again, or not as it stands: hidden inputs of ops."""

import io

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import models
import tidepool_torch as tidepool
from tidepool_torch.planning.planning import machine_of
from training import Ran, Style, body, differences, inside, one_step, plain, state_of

OPTIONS = {"evaluations": 200, "min_bytes": 1024, "machine": machine_of(1e5, 1e5, alignment=64)}


class Layers(nn.Module):
    """`change(x, i)` is what stands between its layers."""

    def __init__(self, change):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(6)])
        self.change = change

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = self.change(F.gelu(layer(x)), i)
        return x


def layers(change):
    def build():
        model = Layers(change)
        return models.Training(
            model, torch.optim.SGD(model.parameters(), lr=0.05),
            lambda n: (torch.randn(256, 64, generator=torch.Generator().manual_seed(n)),) * 2,
            lambda m, x, y: F.mse_loss(m(x), y))
    return build


def same(build, share="60%", **more):
    expected = plain(build, 5)
    ran = inside(build, 5, share, **{**OPTIONS, "allow": ("recompute",), **more})
    assert differences(expected, ran) == []
    assert ran.planned_steps == 3 and ran.divergences == 0
    return ran


def test_memory_of_numpys_may_be_filled_anew_between_two_runs():
    buffer = numpy.zeros((256, 64), dtype=numpy.float32)

    def change(x, i):
        buffer[:] = i + 1
        return x + torch.from_numpy(buffer) * 0.1

    assert same(layers(change), "80%").reruns > 0


def test_switches_that_are_turned_within_a_step_forbid_reruns():
    def change(x, i):
        torch.set_default_dtype(torch.float64 if i % 2 == 0 else torch.float32)
        return x

    try:
        ran = same(layers(change), allow=("swap", "recompute"))
    finally:
        torch.set_default_dtype(torch.float32)
    assert ran.reruns == 0 and ran.moved_in > 0


def test_ops_of_others_run_once():
    calls = []

    @torch.library.custom_op("tidepool_tests::counted", mutates_args=())
    def counted(x: torch.Tensor) -> torch.Tensor:
        calls.append(0)
        return x * (1 + len(calls) % 7)

    counted.register_fake(torch.empty_like)
    counted.register_autograd(lambda context, gradient: gradient)

    def change(x, i):
        return counted(x) if i in (1, 3) else x

    def run(function, *arguments, **more):
        calls.clear()
        return function(*arguments, **more)

    build = layers(change)
    expected = run(plain, build, 5)
    ran = run(inside, build, 5, "80%", **OPTIONS, allow=("recompute",))
    assert differences(expected, ran) == []
    assert ran.reruns > 0 and len(calls) == 10


def test_an_lstm_runs_again_as_it_ran():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(32, 32, batch_first=True)
            self.head = nn.Sequential(*[nn.Sequential(nn.Linear(32, 512), nn.GELU(),
                                                      nn.Linear(512, 32)) for _ in range(4)])

        def forward(self, x):
            return self.head(F.gelu(self.lstm(x)[0]))

    def build():
        model = Recurrent()
        return models.Training(
            model, torch.optim.SGD(model.parameters(), lr=0.05),
            lambda n: (torch.randn(16, 20, 32, generator=torch.Generator().manual_seed(n)),) * 2,
            lambda m, x, y: F.mse_loss(m(x), y))

    same(build, "80%", allow=("swap", "recompute"))


def test_what_a_step_leaves_is_there_behind_it():
    model = Layers(lambda x, i: x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    budget = tidepool.fit(model, optimizer, peak="14MiB", report=False, **OPTIONS)
    for n in range(4):
        x = torch.randn(4096, 64, generator=torch.Generator().manual_seed(n))
        with budget.step():
            optimizer.zero_grad()
            out = model(x)
            F.mse_loss(out, x).backward()
            optimizer.step()
        assert torch.isfinite(out.argmax(1).float().mean())
        assert all(p.grad.norm() >= 0 for p in model.parameters())
        assert n > 0 or budget._away.moved_out > 0
    budget.close()


def test_larger_steps_are_seen_where_no_op_was_looked_at(capsys):
    model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    budget = tidepool.fit(model, optimizer, peak="24MiB", **OPTIONS)
    for n, batch in enumerate([64] * 4 + [3500] * 3):
        x = torch.ones(batch, 256)
        with budget.step():
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    said = capsys.readouterr().err
    assert "more than the budget, while no op was looked at" in said
    budget.close()


def test_models_with_sparse_gradients_are_refused():
    model = nn.Embedding(8, 8, sparse=True)
    with pytest.raises(tidepool.TidepoolError, match="sparse=False"):
        tidepool.fit(model, torch.optim.SGD(model.parameters()), peak="1MiB")


def test_a_model_is_saved_whole_between_steps():
    training = models.make(models.tiny_gpt)
    torch.manual_seed(5)
    budget = tidepool.fit(training.model, training.optimizer, peak="60%", report=False, **OPTIONS)
    losses = [one_step(training, n, Style(), budget.step) for n in range(4)]
    file = io.BytesIO()
    torch.save(training.model, file)
    budget.close()
    file.seek(0)
    read = torch.load(file, weights_only=False)
    expected = dict(training.model.named_parameters())
    assert all(torch.equal(p, expected[n]) for n, p in read.named_parameters())
    body(models.Training(read, torch.optim.SGD(read.parameters(), 0.1), training.batch,
                         training.loss), [training.batch(9)], Style())
    assert differences(plain(models.tiny_gpt, 4), Ran(losses, state_of(training))) == []


def test_flushing_of_denormals_is_a_switch_that_is_seen():
    from tidepool_torch.base import switches
    before = switches.of_host()
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush denormals")
    try:
        assert switches.of_host() != before
    finally:
        torch.set_flush_denormal(False)
    assert switches.of_host() == before


def bank_of(step_of, rows):
    """Six layers that read slots of a bank; `step_of(model, optimizer, bank)` is step(n)."""
    torch.manual_seed(3)
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(6)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return model, optimizer, step_of(model, optimizer, [torch.randn(rows, 64) for _ in range(4)])


def train(step_of, steps=9, rows=1, **more):
    """(losses, state) plainly and inside, and what the budget did."""
    found = []
    for is_inside in (False, True):
        model, optimizer, step = bank_of(step_of, rows)
        budget = tidepool.fit(model, optimizer, peak="60%", report=False,
                              **{**OPTIONS, **more}) if is_inside else None
        losses = []
        for n in range(steps):
            if is_inside:
                with budget.step():
                    losses.append(step(n))
            else:
                losses.append(step(n))
        report = budget.report() if is_inside else None
        if is_inside:
            budget.close()
        state = [p.detach().clone() for p in model.parameters()]
        found.append(([float(loss) for loss in losses], state))
    (plainly, before), (inside_, behind) = found
    assert plainly == inside_
    assert all(torch.equal(a, b) for a, b in zip(before, behind))
    assert report.reruns > 0
    return report


X = torch.randn(256, 64, generator=torch.Generator().manual_seed(1))


def ended(h, optimizer):
    loss = h.pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


@pytest.mark.parametrize("rows", [1, 256])
@pytest.mark.parametrize("native", ["0", "1"])
def test_a_later_step_may_write_what_the_recorded_one_only_read(native, rows, monkeypatch):
    """The slot of a bank that is written alternates, and calls that run again read all of them: of
    small tensors they have copies."""
    monkeypatch.setenv("TIDEPOOL_NATIVE", native)

    def step_of(model, optimizer, bank):
        def step(n):
            h = X
            for k, layer in enumerate(model):
                h = torch.sin(torch.tanh(layer(h)) + bank[k % 4])
            with torch.no_grad():
                bank[n % 4].mul_(0.9).add_(h.mean(0, keepdim=True), alpha=0.1)
            return ended(h, optimizer)
        return step

    assert (train(step_of, rows=rows).divergences > 0) == (rows > 1)


def test_an_op_that_drew_nothing_while_it_was_recorded_draws_later():
    def step_of(model, optimizer, bank):
        noise = nn.RReLU()

        def step(n):
            noise.train(n >= 4)
            h = X
            for layer in model:
                h = torch.sin(noise(layer(h)))
            return ended(h, optimizer)
        return step

    assert train(step_of).divergences == 0


def test_numpy_may_change_what_no_op_reads_any_more_but_a_rerun():
    def step_of(model, optimizer, bank):
        def step(n):
            h, shift = X, torch.full((64,), 1.0)
            for layer in model:
                h = torch.sin(torch.tanh(layer(h)) + shift)
            shift.numpy()[...] += 1
            return ended(h, optimizer)
        return step

    train(step_of)


@pytest.mark.parametrize("native", ["0", "1"])
def test_a_call_on_another_tensor_that_is_away_ends_the_plan(native, monkeypatch):
    monkeypatch.setenv("TIDEPOOL_NATIVE", native)

    def step_of(model, optimizer, bank):
        small = nn.Parameter(torch.zeros(3))

        def step(n):
            h = X
            for layer in model:
                h = torch.sin(torch.tanh(layer(h)))
            logged = small if n < 4 else model[n % 6].weight
            return ended(h, optimizer) + logged.detach().norm()
        return step

    assert train(step_of, home=False).divergences > 0


def small_mask_written(write):
    """A small mask is written between its use and the backward pass: by no op."""
    def change(x, i):
        change.mask = torch.ones(64) if i == 0 else change.mask
        x = torch.sigmoid(x * change.mask)
        write(change.mask)
        return x

    return layers(change)


@pytest.mark.parametrize("write", (
    lambda mask: mask.numpy().__iadd__(0.5),
    lambda mask: torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(mask)).add_(0.5),
    lambda mask: mask.untyped_storage().fill_(61)), ids=("numpy", "dlpack", "storage"))
def test_small_tensors_may_be_written_unseen_between_two_runs(write):
    assert same(small_mask_written(write), "80%").reruns > 0


LOOKS = {"numpy": lambda t: t.detach().numpy(), "dlpack": lambda t: numpy.from_dlpack(t.detach())}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("allow, share", ((("swap",), "95%"), (("swap",), "80%"), (("recompute",), "80%")))
def test_arrays_of_activations_that_only_some_steps_make_keep_their_bytes(look, allow, share):
    """Where the budget has room for them the plan goes on."""
    arrays, sums = [], []

    def change(x, i):
        if change.step[0] in (3, 4):
            arrays.append(LOOKS[look](x))
        return x

    def build():
        change.step = [-1]
        training = layers(change)()
        batch = training.batch

        def counted(n):
            sums.append([float(a.sum()) for a in arrays])
            arrays.clear()
            change.step[0] += 1
            return batch(n)

        training.batch = counted
        return training

    def sums_of(run):
        sums.clear()
        arrays.clear()
        ran = run()
        return ran, [*sums, [float(a.sum()) for a in arrays]]

    expected, arrays_expected = sums_of(lambda: plain(build, 6))
    ran, arrays_seen = sums_of(lambda: inside(build, 6, share, **{**OPTIONS, "allow": allow}))
    assert differences(expected, ran) == []
    assert arrays_seen == arrays_expected and [len(a) for a in arrays_seen[4:]] == [6, 6, 0]
    assert ran.moved_out + ran.reruns > 0 and (ran.divergences == 0) == (share == "95%")


def test_what_numpy_wrote_since_is_not_computed_again_of():
    step = [0]

    def change(x, i):
        made = torch.sigmoid(x)
        out = torch.sigmoid(torch.exp(made))
        if step[0] >= 3:
            made.detach().numpy()[:] = 0  # exp runs again of it
        return out

    training = models.make(layers(change))
    # By the times of ops plans differ: in some the tensor is away when numpy comes.
    refused = "may have changed what it reads|is not on the device"
    with pytest.raises(RuntimeError, match=refused):
        with tidepool.fit(training.model, training.optimizer, peak="80%", report=False,
                          **OPTIONS, allow=("recompute",)) as budget:
            for n in range(5):
                step[0] = n
                for planned in budget._plans:
                    planned.executor.growth.room = 1 << 30  # so that arrays may stay
                one_step(training, n, Style(), budget.step)
