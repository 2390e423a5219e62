"""The device "sim" itself: the CPU's bits, CUDA's rules, and that it finds what breaks them."""

import ctypes
import mmap
import threading

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import simgpu

SIM = simgpu.DEVICE
POLICIES = ("eager", "lazy", "last", "random")
MIB = 1 << 20


def convolutions():
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.LayerNorm(64), nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 10))


def train(device, steps=3):
    model = convolutions().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
    draws = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(steps):
        x = torch.randn(8, 3, 16, 16, generator=draws).to(device)
        y = torch.randint(0, 10, (8,), generator=draws).to(device)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return [loss.item() for loss in losses], {k: v.cpu() for k, v in model.state_dict().items()}


@pytest.mark.parametrize("policy", POLICIES)
def test_training_has_the_bits_of_the_cpu(policy):
    losses, state = train(torch.device("cpu"))
    simgpu.policy(policy, 7)
    there, its_state = train(SIM)
    assert there == losses
    assert all(torch.equal(its_state[k], v) for k, v in state.items())
    assert not simgpu.races()


@pytest.mark.parametrize("make", [
    lambda: torch.nn.LSTM(8, 16, 2), lambda: torch.nn.MultiheadAttention(16, 2),
    lambda: torch.nn.TransformerEncoderLayer(16, 2, 32, 0.0)], ids=["lstm", "attention", "encoder"])
def test_ops_of_several_parts_have_the_bits_of_the_cpu(make):
    torch.manual_seed(0)
    module = make()
    x = torch.randn(5, 3, 8 if isinstance(module, torch.nn.LSTM) else 16)
    arguments = (x, x, x) if isinstance(module, torch.nn.MultiheadAttention) else (x,)

    def first(out):
        return out[0] if isinstance(out, tuple) else out

    expected = first(module(*arguments))
    got = first(module.to(SIM)(*(a.to(SIM) for a in arguments)))
    assert torch.allclose(got.cpu(), expected, atol=1e-5)
    got.sum().backward()


@pytest.mark.parametrize("loss", [torch.nn.MSELoss, torch.nn.SmoothL1Loss, torch.nn.HuberLoss,
                                  torch.nn.L1Loss, torch.nn.KLDivLoss, torch.nn.BCEWithLogitsLoss])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_have_the_bits_of_the_cpu(loss, reduction):
    torch.manual_seed(0)
    target = torch.rand(8, 4)

    def run(device):
        x = torch.linspace(-2, 2, 32).reshape(8, 4).to(device).requires_grad_()
        out = loss(reduction=reduction)(x, target.to(device))
        out.sum().backward()
        return out.detach().cpu(), x.grad.cpu()

    assert all(torch.equal(a, b) for a, b in zip(run("cpu"), run(SIM)))


def test_a_tensor_of_the_host_is_refused_beside_its_own():
    layer, x = torch.nn.Linear(4, 4).to(SIM), torch.ones(2, 4)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        layer(x)
    assert torch.equal((layer.weight * torch.tensor(2.0)).cpu(), layer.weight.cpu() * 2)
    assert torch.equal(layer.weight[torch.tensor([1, 0])].cpu(), layer.weight.cpu()[[1, 0]])


def test_host_cannot_read_its_addresses():
    x = torch.ones(4, device=SIM)
    assert x.data_ptr() != 0
    assert not x.is_cpu


def test_random_numbers_are_of_its_own_generator():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    state = torch.sim.get_rng_state()
    first = torch.nn.functional.dropout(torch.ones(100, device=SIM)).cpu()
    assert torch.equal(torch.get_rng_state(), before)
    second = torch.nn.functional.dropout(torch.ones(100, device=SIM)).cpu()
    assert not torch.equal(first, second)
    torch.sim.set_rng_state(state)
    assert torch.equal(torch.nn.functional.dropout(torch.ones(100, device=SIM)).cpu(), first)


class _Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.threads = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.threads.append(threading.get_ident())
        return func(*args, **(kwargs or {}))


def test_backward_runs_on_a_thread_of_the_engine_and_the_mode_goes_along():
    model = torch.nn.Linear(8, 8).to(SIM)
    with _Seen() as seen:
        loss = model(torch.randn(4, 8).to(SIM)).sum()
        forward = len(seen.threads)
        loss.backward()
    assert set(seen.threads[:forward]) == {threading.get_ident()}
    assert set(seen.threads[forward:]) - {threading.get_ident()}


@pytest.mark.skipif(not hasattr(torch.UntypedStorage, "_swap_data_ptr_"), reason="torch 2.12 has it")
def test_storage_gives_its_bytes_away_and_gets_them_back():
    x = torch.arange(1024.0).to(SIM)
    view, storage = x[3:7], x.untyped_storage()
    size = storage.nbytes()

    def over(address):
        return torch._C._construct_storage_from_data_pointer(address, SIM, size)

    taken = over(storage.data_ptr())
    storage._swap_data_ptr_(taken)
    storage._swap_data_ptr_(over(0))
    torch._C._set_storage_data_ptr_access_error_msg(storage._cdata, "it is away")
    with pytest.raises(RuntimeError, match="away"):
        view + 1
    assert x[5:].view(-1, 1).shape == (1019, 1)
    torch._C._clear_storage_data_ptr_access_error_msg(storage._cdata)
    storage._swap_data_ptr_(taken)
    assert view.cpu().tolist() == [3.0, 4.0, 5.0, 6.0]


def test_cap_is_held_and_the_pool_is_released_first():
    torch.empty(MIB, device=SIM)
    simgpu.empty_cache()
    simgpu.cap(simgpu.stats()["reserved"] + MIB)
    kept = torch.empty(MIB // 8, device=SIM)
    del kept
    retries = simgpu.stats()["retries"]
    other = torch.empty(MIB // 4, device=SIM)  # the freed block is too small for it
    assert simgpu.stats()["retries"] == retries + 1
    with pytest.raises(torch.OutOfMemoryError, match="exceed the cap"):
        torch.empty(MIB // 4, device=SIM)
    del other


def test_planned_failures_arrive():
    simgpu.fail_allocation(1)
    torch.empty(4, device=SIM)
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(4, device=SIM)
    x = torch.ones(4, device=SIM)
    simgpu.fail_task("copy to host", 0)
    with pytest.raises(RuntimeError, match="copy to host: a test asked for it"):
        x.cpu()
    assert x.cpu().tolist() == [1.0] * 4


class _Pinned:
    def __init__(self, size):
        self.size = size
        self._map = mmap.mmap(-1, size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self.tensor = torch.frombuffer(self._map, dtype=torch.float32)

    def __enter__(self):
        simgpu.host_register(self.address, self.size)
        return self

    def __exit__(self, *error):
        simgpu.synchronize()
        simgpu.host_unregister(self.address)


def _out_and_reuse(waits):
    """Copies a tensor out on a side stream, frees it, reads the copy, with these waits only."""
    with _Pinned(MIB) as pinned:
        side = torch.Stream(device=SIM)
        a = torch.ones(MIB // 4, device=SIM).mul_(3)
        if "out" in waits:
            written = torch.Event(device=SIM)
            written.record()
            side.wait_event(written)
        with side:
            pinned.tensor.copy_(a, non_blocking=True)
        if "reuse" in waits:
            read = torch.Event(device=SIM)
            read.record(side)
            torch.accelerator.current_stream(SIM).wait_event(read)
        del a
        torch.zeros(MIB // 4, device=SIM)  # gets the bytes of `a`
        if "host" in waits:
            side.synchronize()
        simgpu.host_access(pinned.address, MIB, False, "a script that reads")
        torch.accelerator.synchronize(SIM)
        return bool((pinned.tensor == 3).all()), simgpu.races()


@pytest.mark.parametrize("policy", POLICIES)
def test_each_missing_wait_is_found(policy):
    simgpu.policy(policy, 3)
    whole = {"out", "reuse", "host"}
    assert _out_and_reuse(whole) == (True, [])
    for missing in whole:
        _, races = _out_and_reuse(whole - {missing})
        assert races, missing


def test_missing_wait_gives_wrong_bytes_under_an_adverse_order():
    simgpu.policy("last")
    right, _ = _out_and_reuse({"reuse", "host"})
    assert not right


def test_races_are_raised_where_a_test_asks_for_it():
    simgpu.raise_races(True)
    with pytest.raises(RuntimeError, match="sim: race: .*without waiting for it"):
        _out_and_reuse({"out", "host"})


def test_record_stream_defers_reuse():
    side = torch.Stream(device=SIM)
    x = torch.ones(MIB, device=SIM)
    done = torch.Event(device=SIM)
    done.record()
    side.wait_event(done)
    with side:
        x.add(1)
    x.record_stream(side)
    address = x.data_ptr()
    del x
    assert torch.empty(MIB, device=SIM).data_ptr() != address
    assert not simgpu.races()


def test_time_is_counted_and_copies_run_beside_kernels():
    simgpu.rates(1e9, 1e9, 0)
    try:
        with _Pinned(MIB) as pinned:
            side = torch.Stream(device=SIM)
            x, y = torch.ones(MIB // 4, device=SIM), torch.ones(MIB // 4, device=SIM)
            torch.accelerator.synchronize(SIM)
            begin, end = (torch.Event(device=SIM, enable_timing=True) for _ in range(2))
            begin.record()
            side.wait_event(begin)
            with side:
                pinned.tensor.copy_(x, non_blocking=True)
            y.neg_()
            end.record()
            end.synchronize()
            side.synchronize()
            # The kernel reads and writes it; the copy takes half of that, beside it.
            assert begin.elapsed_time(end) == pytest.approx(2 * MIB / 1e9 * 1e3, rel=0.01)
    finally:
        simgpu.rates(4e12, 5e10, 5000)


def test_autocast_and_checkpoint():
    x = torch.randn(8, 8).to(SIM)
    with torch.autocast("sim", dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
    model = convolutions().to(SIM)
    checkpoint(model, torch.randn(8, 3, 16, 16).to(SIM), use_reentrant=False).sum().backward()
    assert model[0].weight.grad is not None


def test_sizes_that_depend_on_values_are_waited_for():
    x = torch.arange(6.0).to(SIM)
    waits = simgpu.stats()["host_syncs"]
    chosen = x[x > 2]
    assert simgpu.stats()["host_syncs"] > waits
    assert chosen.device == SIM
    assert chosen.cpu().tolist() == [3.0, 4.0, 5.0]


def test_unknown_policy_is_refused():
    with pytest.raises(ValueError, match="eager, lazy, last or random"):
        simgpu.policy("quick")
