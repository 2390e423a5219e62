"""Models of the tests, each with its optimizer, batches and loss."""

import dataclasses
import math
import typing

import torch
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass
class Training:
    model: nn.Module
    optimizer: torch.optim.Optimizer
    batch: typing.Callable  # step -> (x, y)
    loss: typing.Callable  # (model, x, y) -> loss


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                          nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        y += self.shortcut(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self, width=32, blocks=(2, 2, 2), classes=10, dropout=0.1):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width),
                                  nn.ReLU(inplace=True))
        layers, inputs = [], width
        for stage, count in enumerate(blocks):
            for i in range(count):
                layers.append(Block(inputs, width << stage, 2 if i == 0 and stage > 0 else 1))
                inputs = width << stage
        self.body = nn.Sequential(*layers)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(inputs, classes)

    def forward(self, x):
        return self.head(self.dropout(self.body(self.stem(x)).mean((2, 3))))


class Attention(nn.Module):
    def __init__(self, width, heads, length, dropout):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        mask = torch.tril(torch.ones(length, length, dtype=torch.bool))[None, None]
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = [t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for t in self.qkv(x).split(width, 2)]
        a = (q @ k.transpose(-2, -1)) / math.sqrt(width // self.heads)
        a = a.masked_fill(~self.mask[:, :, :length, :length], float("-inf"))
        a = self.dropout(F.softmax(a, -1))
        return self.out((a @ v).transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads, length, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, length, dropout)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.dropout(self.down(F.gelu(self.up(self.norm2(x)))))


class GPT(nn.Module):
    """Its head shares the embedding's weights."""

    def __init__(self, vocabulary=4096, width=256, heads=4, layers=6, length=128, dropout=0.1):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(1, length, width) * 0.02)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList([Layer(width, heads, length, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, x):
        x = self.dropout(self.tokens(x) + self.positions[:, :x.shape[1]])
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Odd(nn.Module):
    """What zoo models never have: in-place changes of views, tensors that are written in part,
    weights used twice and transposed, a large buffer that each step updates."""

    def __init__(self, width=64, generator=False):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.randn(width))
        self.register_buffer("mean", torch.zeros(width, width))
        self.dropout = nn.Dropout(0.3)
        self.generator = torch.Generator().manual_seed(7) if generator else None

    def forward(self, x):
        h = F.relu_(self.linear(x)) * 1.5
        h[:, :32].mul_(0.5)
        e = h.new_empty(h.shape)
        e[:, :32] = h[:, 32:]
        e[:, 32:] = self.dropout(h[:, :32])
        e = e + 0
        with torch.no_grad():
            self.mean.mul_(0.9).add_(h[:64].t() @ e[:64], alpha=0.1)
        k = F.gelu(self.linear(e))
        noise = torch.rand(k.shape, generator=self.generator)
        k = (k + noise * self.scale).view(-1, 8, 8).transpose(1, 2).reshape(-1, 64)
        k += h
        z = F.dropout(torch.cat([k, e], 1), 0.2)
        weight = self.linear.weight
        return (z @ torch.cat([weight, weight.t()], 0)).tanh_() + self.mean.sum() * 0


def _seeded(seed):
    return torch.Generator().manual_seed(1000 + seed)


def _images(count, side, classes=10):
    def batch(step):
        g = _seeded(step)
        return (torch.randn(count, 3, side, side, generator=g),
                torch.randint(0, classes, (count,), generator=g))
    return batch


def _tokens(count, length, vocabulary):
    def batch(step):
        x = torch.randint(0, vocabulary, (count, length + 1), generator=_seeded(step))
        return x[:, :-1], x[:, 1:]
    return batch


def _classes(model, x, y):
    return F.cross_entropy(model(x), y)


def _next_tokens(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def _sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def _adamw(model, rate=3e-4):
    return torch.optim.AdamW(model.parameters(), lr=rate)


def resnet(batch=64):
    model = ResNet()
    return Training(model, _sgd(model), _images(batch, 32), _classes)


def gpt(batch=8):
    model = GPT()
    return Training(model, _adamw(model), _tokens(batch, 128, 4096), _next_tokens)


def tiny_resnet(batch=4):
    model = ResNet(width=8, blocks=(1, 1, 1))
    return Training(model, _sgd(model), _images(batch, 16), _classes)


def tiny_gpt(batch=2):
    model = GPT(vocabulary=128, width=32, heads=2, layers=2, length=16)
    return Training(model, _adamw(model, 1e-3), _tokens(batch, 16, 128), _next_tokens)


def gpt_with(**options):
    """Builds a tiny GPT whose AdamW has these options."""
    def build():
        training = tiny_gpt()
        training.optimizer = torch.optim.AdamW(training.model.parameters(), lr=1e-3, **options)
        return training
    return build


def odd(generator=False):
    model = Odd(generator=generator)

    def batch(step):
        return torch.randn(64, 64, generator=_seeded(step)), torch.randn(64, 64,
                                                                        generator=_seeded(step + 9))

    return Training(model, _adamw(model, 1e-3), batch,
                    lambda m, x, y: F.mse_loss(m(x), y))


def odd_with_generator():
    return odd(generator=True)


TINY = {"resnet": tiny_resnet, "gpt": tiny_gpt, "odd": odd, "generator": odd_with_generator}
LARGE = {"resnet": resnet, "gpt": gpt}


def make(build, seed=0):
    torch.manual_seed(seed)
    return build()
