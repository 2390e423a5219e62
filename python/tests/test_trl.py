"""TidepoolCallback in TRL's SFTTrainer, unchanged: the bits of a training without it."""

import pytest

transformers = pytest.importorskip("transformers")
trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")
tokenizers = pytest.importorskip("tokenizers")

import torch

from frameworks import Tally, differences, no_mode_is_left, options, state_of, tallied
from tidepool_torch.integrations.transformers import TidepoolCallback

WORDS = "the tide goes out and the tide comes back with what it took a pool stays".split()


def tokenizer():
    names = {w: i for i, w in enumerate(["<pad>", "<eos>", *sorted(set(WORDS))])}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(names, unk_token="<pad>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")


def texts():
    drawn = torch.Generator().manual_seed(2)
    return datasets.Dataset.from_dict({"text": [
        " ".join(WORDS[i] for i in torch.randint(0, len(WORDS), (15,), generator=drawn))
        for _ in range(96)]})


# SFTTrainer computes the loss in pieces of 7.5 MiB however small the model is; all else is 0.5.
PEAK = "7900KiB"


def trainer(folder, callbacks=()):
    torch.manual_seed(1)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=32, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, max_position_embeddings=32))
    arguments = trl.SFTConfig(
        str(folder), per_device_train_batch_size=4, gradient_accumulation_steps=4,
        num_train_epochs=1, max_grad_norm=0.1, learning_rate=1e-3, logging_steps=1, save_steps=3,
        report_to=[], disable_tqdm=True, use_cpu=True, bf16=False, seed=7, max_length=16)
    return trl.SFTTrainer(model, arguments, train_dataset=texts(), processing_class=tokenizer(),
                          callbacks=list(callbacks))


def logged(trained):
    return [{k: v for k, v in row.items() if "runtime" not in k and "per_second" not in k}
            for row in trained.state.log_history]


def test_sft_in_a_budget_gives_the_bits_of_one_without(tmp_path):
    plain = trainer(tmp_path / "plain")
    plain.train()
    expected = state_of(plain.model, plain.optimizer.optimizer)
    tally = Tally()
    inside = trainer(tmp_path / "inside", [tallied(TidepoolCallback, tally)(**options(peak=PEAK))])
    inside.train()
    assert differences(expected, state_of(inside.model, inside.optimizer.optimizer)) == []
    assert logged(plain) == logged(inside)
    assert tally.moved > 0 and tally.planned_steps >= 3
    assert no_mode_is_left()

    checkpoint = str(tmp_path / "inside" / "checkpoint-3")
    for folder, callbacks in (("without", []), ("resumed", [TidepoolCallback(**options(peak=PEAK))])):
        resumed = trainer(tmp_path / folder, callbacks)
        resumed.train(resume_from_checkpoint=checkpoint)
        assert differences(expected, state_of(resumed.model, resumed.optimizer.optimizer)) == []
