"""Trains models on "sim" plainly and inside a budget."""

import contextlib
import dataclasses
import functools
import gc

import sim_setup  # noqa: F401  pylint: disable=unused-import
import torch
from torch import nn
from torch.nn import functional as F

import models
import simgpu
import tidepool_torch as tidepool

SIM = simgpu.DEVICE
VOCABULARY = 97

# Kernels of KiB take longer than to launch them, and copies about as long as kernels.
RATES = (4e9, 2e9, 1000)

# By counts, not by a clock: the same plans however busy the machine is.
PLANNING = {"min_bytes": 4096, "evaluations": 200, "time_limit": 300}


def machine(link=2e9):
    speed = {"bytes_per_second": link, "latency_ns": 1000}
    return {"name": "sim", "description": "sim", "device_memory": 0, "alignment": 512, "duplex": True,
            "to_host": speed, "to_device": speed,
            "compute": {"peak_flops": 0.0, "bandwidth": 0.0, "launch_ns": 0, "max_efficiency": 1.0,
                        "half_flops": 0.0}}


# ---- models


class LlamaLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        y = self.norms[0](x)
        q, k, v = (part(y).view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(_turned(q), _turned(k), v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(batch, length, width))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def _turned(x):
    """Rotary positions."""
    half = x.shape[-1] // 2
    angle = torch.outer(torch.arange(x.shape[-2], device=x.device),
                        1e4 ** (-torch.arange(half, device=x.device) / half))
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


class Llama(nn.Module):
    def __init__(self, width=32, layers=3, heads=2):
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, width)
        self.layers = nn.Sequential(*(LlamaLayer(width, heads) for _ in range(layers)))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, x):
        return self.head(self.norm(self.layers(self.token(x))))


class Recurrent(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, width)
        self.lstm = nn.LSTM(width, width, 2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, x):
        return self.head(self.lstm(self.token(x))[0])


class UNet(nn.Module):
    def __init__(self, width=16, classes=4):
        super().__init__()

        def pair(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs),
                                 nn.ReLU(), nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU())

        self.down, self.bottom = pair(3, width), pair(width, 2 * width)
        self.raise_ = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.up, self.head = pair(2 * width, width), nn.Conv2d(width, classes, 1)

    def forward(self, x):
        across = self.down(x)
        below = self.raise_(self.bottom(F.max_pool2d(across, 2)))
        return self.head(self.up(torch.cat([across, below], 1)))


def _small_gpt():
    return models.GPT(vocabulary=VOCABULARY, length=16, width=32, heads=2, layers=3, dropout=0.1)


def _layers():
    """Layers of one size, so that all of its large blocks are equal."""
    return nn.Sequential(*(part for _ in range(6) for part in (nn.Linear(128, 128), nn.ReLU())))


MODELS = {"resnet": lambda: models.ResNet(width=16, blocks=(1, 1)), "gpt": _small_gpt, "llama": Llama,
          "lstm": Recurrent, "unet": UNet}
BESIDE = {"mlp": _layers}  # of single tests
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, foreach=False),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=False),
    "foreach": lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=True),
    "fused": lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True)}


def batch_of(name, rows, number):
    draws = torch.Generator().manual_seed(number)
    if name in ("resnet", "unet"):
        x = torch.randn(rows, 3, 16, 16, generator=draws)
        size = (rows,) if name == "resnet" else (rows, 16, 16)
        return x.to(SIM), torch.randint(0, 4, size, generator=draws).to(SIM)
    if name == "mlp":
        return (torch.randn(rows, 128, generator=draws).to(SIM),
                torch.randint(0, 128, (rows,), generator=draws).to(SIM))
    tokens = torch.randint(0, VOCABULARY, (rows, 17), generator=draws)
    return tokens[:, :-1].contiguous().to(SIM), tokens[:, 1:].reshape(-1).to(SIM)


@dataclasses.dataclass
class Case:
    """How a step is written; a test changes what it is about."""

    model: str = "gpt"
    optimizer: str = "adamw"
    micro_batches: int = 1
    autocast: bool = False
    clip: bool = True
    call: object = None  # in the place of model(x)
    before_backward: object = None  # (step number, model)
    steps: int = 5
    rows: int = 8

    def make(self):
        torch.manual_seed(0)
        model = {**MODELS, **BESIDE}[self.model]().to(SIM)
        optimizer = OPTIMIZERS[self.optimizer](model.parameters())
        torch.manual_seed(5)
        return model, optimizer

    def batches(self, number):
        return [batch_of(self.model, self.rows, 10 * number + i) for i in range(self.micro_batches)]

    def step(self, model, optimizer, batches, number=0):
        """Reads no value, so that the host need not wait; the losses."""
        losses = []
        for x, y in batches:
            with torch.autocast("sim", dtype=torch.bfloat16, enabled=self.autocast):
                out = self.call(model, x) if self.call else model(x)
                out = out.movedim(1, -1) if self.model == "unet" else out
                loss = F.cross_entropy(out.reshape(-1, out.shape[-1]).float(), y.reshape(-1))
            if self.before_backward:
                self.before_backward(number, model)
            loss.backward()
            losses.append(loss.detach())
        if self.clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return losses


def values(tensors):
    return [t.detach().cpu() for t in tensors]


def state_of(model, optimizer):
    found = {f"model {k}": v for k, v in model.state_dict().items()}
    for i, state in enumerate(optimizer.state.values()):
        found.update({f"optimizer {i} {k}": v for k, v in state.items() if torch.is_tensor(v)})
    found = {k: v.detach().cpu() for k, v in found.items()}
    found["random state"] = torch.get_rng_state()
    found["random state of sim"] = torch.sim.get_rng_state()
    return found


@dataclasses.dataclass
class Ran:
    losses: list
    state: dict
    peak: int = 0  # of planned steps; of all but the first plainly
    budget: int = 0
    planned_steps: int = 0
    moved: int = 0
    reruns: int = 0
    waits: int = 0  # of the host, in planned steps
    divergences: int = 0
    report: object = None


def differences(one, other):
    found = [f"loss {i}" for i, (a, b) in enumerate(zip(one.losses, other.losses))
             if not torch.equal(a, b)]
    if len(one.losses) != len(other.losses):
        found.append("number of losses")
    names = {**one.state, **other.state}
    return found + [n for n in names if n not in one.state or n not in other.state
                    or not torch.equal(one.state[n], other.state[n])]


def plain(case):
    return _plain(tuple(dataclasses.asdict(case).items()))


@functools.lru_cache(maxsize=None)
def _plain(fields):
    case = Case(**dict(fields))
    simgpu.policy("eager")
    gc.collect()
    simgpu.synchronize()
    base = simgpu.stats()["allocated"]
    model, optimizer = case.make()
    losses, peak = [], 0
    for number in range(case.steps):
        batches = case.batches(number)
        simgpu.reset_peak()
        losses += case.step(model, optimizer, batches, number)
        if number > 0:
            peak = max(peak, simgpu.stats()["peak"] - base)
    return Ran(values(losses), state_of(model, optimizer), peak)


def inside(case, share, policy="lazy", order_seed=1, raise_races=True, before_step=lambda *_: None,
           step=None, link=2e9, **options):
    """before_step(number, budget) is called before each; step(budget) is its block."""
    expected = plain(case)
    gc.collect()
    simgpu.policy(policy, order_seed)
    simgpu.races()
    simgpu.raise_races(raise_races)
    base = simgpu.stats()["allocated"]
    model, optimizer = case.make()
    simgpu.rates(RATES[0], link, RATES[2])
    budget = tidepool.fit(model, optimizer, peak=int(expected.peak * share),
                          **{"report": False, "machine": machine(link), **PLANNING, **options})
    ran = Ran([], {})
    losses = []
    with contextlib.closing(budget):
        for number in range(case.steps):
            batches = case.batches(number)
            before_step(number, budget)
            planned = sum(p.steps for p in budget._plans)
            gc.collect()  # tensors in cycles of Python's are the script's garbage
            simgpu.reset_peak()
            waits = simgpu.stats()["host_syncs"]
            with (step(budget) if step else budget.step()):
                losses += case.step(model, optimizer, batches, number)
            if sum(p.steps for p in budget._plans) > planned:
                ran.waits += simgpu.stats()["host_syncs"] - waits
                ran.peak = max(ran.peak, simgpu.stats()["peak"] - base)
        ran.report = report = budget.report()
        ran.budget, ran.planned_steps = budget.peak, report.planned_steps
        ran.moved, ran.reruns = report.moved_out, report.reruns
        ran.divergences = budget.divergences
    ran.losses, ran.state = values(losses), state_of(model, optimizer)
    simgpu.raise_races(False)
    return ran
