"""Networks that people have, by their own packages, at 60 and 45 % of what a step takes."""

import pytest
import torch
from torch.nn import functional as F

import models
from training import Style, differences, inside, plain

STYLE = Style(batch_inside=True)


def _torchvision(name):
    def build():
        torchvision = pytest.importorskip("torchvision")
        model = getattr(torchvision.models, name)(num_classes=10)
        return models.Training(model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
                               models._images(8, 96), lambda m, x, y: F.cross_entropy(m(x), y))
    return build


def _transformers(name):
    def build():
        transformers = pytest.importorskip("transformers")
        size = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4,
                "intermediate_size": 512, "vocab_size": 2048}
        if name == "gpt2":
            config = transformers.GPT2Config(n_layer=3, n_embd=128, n_head=4, vocab_size=2048,
                                             n_positions=128)
            model = transformers.GPT2LMHeadModel(config)
        elif name == "bert":
            model = transformers.BertForMaskedLM(transformers.BertConfig(**size))
        else:
            model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**size))
        model.train()
        tokens = models._tokens(8, 127, 2048)
        return models.Training(model, torch.optim.AdamW(model.parameters(), lr=3e-4),
                               lambda n: (torch.cat([tokens(n)[0], tokens(n)[1][:, -1:]], 1),) * 2,
                               lambda m, x, y: m(input_ids=x, labels=y).loss)
    return build


BUILDS = {**{n: _torchvision(n) for n in ("resnet18", "densenet121", "mobilenet_v2")},
          **{n: _transformers(n) for n in ("gpt2", "bert", "llama")}}


@pytest.mark.parametrize("share", ["60%", "45%"])
@pytest.mark.parametrize("name", BUILDS)
def test_networks_of_other_packages(name, share):
    build = BUILDS[name]
    expected = plain(build, 4, STYLE)
    ran = inside(build, 4, share, STYLE, time_limit=4)
    print(f"{name} {share}: measured {ran.peak / 2**20:.1f} of {ran.budget / 2**20:.1f} MiB, "
          f"{ran.moved_out >> 20} MiB out, {ran.moved_in >> 20} in, {ran.reruns} reruns")
    assert differences(expected, ran) == []
    assert ran.planned_steps == 2
    assert ran.moved_in + ran.reruns > 0
    assert ran.peak <= ran.budget
