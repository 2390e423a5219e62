"""Trainings plainly, inside budgets and by what else saves memory, each in a process of its own."""

import contextlib
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time

import torch

from .facts import IS_SIM, KIND, device, module, prepare, say, seconds_left

SHARES = (0.60, 0.33, 0.75, 0.45)
OPTIONS = {"min_bytes": 4096, "time_limit": 2.0} if IS_SIM else {"time_limit": 4.0}
STEPS, WARM_UP = (3, 4) if IS_SIM else (8, 5)
LARGEST_IN = (8 << 20) if IS_SIM else (24 << 30)


# ---- models


def _language_model(name, rows):
    import transformers
    if name.startswith("gpt2"):
        sizes = {"n_layer": 2, "n_embd": 64, "n_head": 2} if IS_SIM else {
            "n_layer": 24, "n_embd": 1024, "n_head": 16}
        config = transformers.GPT2Config(vocab_size=512 if IS_SIM else 50257, use_cache=False, **sizes)
        model = transformers.GPT2LMHeadModel(config)
    else:
        sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
                 "num_attention_heads": 2} if IS_SIM else {
                     "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 16,
                     "num_attention_heads": 16}
        config = transformers.LlamaConfig(vocab_size=512 if IS_SIM else 32000, use_cache=False, **sizes)
        model = transformers.LlamaForCausalLM(config)
    length = 32 if IS_SIM else 1024
    data = [torch.randint(0, config.vocab_size, (rows, length)).to(device()) for _ in range(2)]
    model = model.to(device()).train()
    return model, data, lambda i: model(input_ids=data[i % 2], labels=data[i % 2]).loss


def _image_model(rows):
    import torchvision
    model = (torchvision.models.resnet18 if IS_SIM else torchvision.models.resnet50)().to(device())
    side = 64 if IS_SIM else 224
    data = [(torch.randn(rows, 3, side, side).to(device()), torch.randint(0, 1000, (rows,)).to(device()))
            for _ in range(2)]

    def loss(i):
        return torch.nn.functional.cross_entropy(model(data[i % 2][0]), data[i % 2][1])

    return model, data, loss


def make(name, rows=None, optimizer_of=None):
    """(model, optimizer, step(i), its batches), always the same; optimizer_of(model) makes another."""
    torch.manual_seed(0)
    if name.startswith("resnet"):
        model, data, loss = _image_model(rows or (2 if IS_SIM else 192))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    else:
        model, data, loss = _language_model(name, rows or (2 if IS_SIM else 16))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=not IS_SIM)
    if optimizer_of is not None:
        optimizer = optimizer_of(model)
    half = name.endswith("bf16")

    def step(i):
        with torch.autocast(KIND, dtype=torch.bfloat16, enabled=half):
            value = loss(i)
        value.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return value.detach()

    return model, optimizer, step, data


# ---- one training


def _checkpointed(model):
    if hasattr(model, "gradient_checkpointing_enable"):
        model.gradient_checkpointing_enable({"use_reentrant": False})
        return
    from torch.utils.checkpoint import checkpoint
    for layer in (model.layer1, model.layer2, model.layer3, model.layer4):
        for block in layer:
            plain = block.forward
            block.forward = lambda x, plain=plain: checkpoint(plain, x, use_reentrant=False)


def _offloaded(model):
    """torchao's optimizer, whose state and update are the host's."""
    from torchao.optim import CPUOffloadOptimizer
    return CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-4, fused=True)


def measured(step, steps, around=contextlib.nullcontext):
    """Median milliseconds of steps, what they took, and their losses."""
    times, losses = [], []
    module().synchronize()
    module().reset_peak_memory_stats()
    for i in range(steps):
        start = time.perf_counter()
        with around():
            losses.append(step(i))
        module().synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return {"ms": round(statistics.median(times), 2), "allocated": module().max_memory_allocated(),
            "reserved": module().max_memory_reserved(),
            "retries": module().memory_stats().get("num_alloc_retries", 0),
            "losses": [float(loss).hex() for loss in losses[:5]]}


def _bits(model):
    digest = hashlib.sha256()
    for _, value in sorted(model.state_dict().items()):
        digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def run_one(text):
    """`text`: a dict of name, how, and amount of bytes or rows. Prints what was found."""
    prepare()
    asked = json.loads(text)
    torch.backends.cudnn.benchmark = False
    offloaded = asked["how"] == "offloaded optimizer"
    model, optimizer, step, _ = make(asked["name"], asked.get("rows"), _offloaded if offloaded else None)
    around, budget = contextlib.nullcontext, None
    if asked["how"] == "checkpoint":
        _checkpointed(model)
    elif asked["how"] == "save_on_cpu":
        def around():
            return torch.autograd.graph.save_on_cpu(pin_memory=not IS_SIM)
    elif asked["how"] == "tidepool":
        import tidepool_torch
        budget = tidepool_torch.fit(model, optimizer, peak=asked["peak"], **OPTIONS)
        around = budget.step
    for i in range(WARM_UP):
        with around():
            step(i)
    found = measured(lambda i: step(WARM_UP + i), asked.get("steps", STEPS), around)
    if budget is not None:
        report = budget.report()
        found.update(budget=budget.peak, planned=report.planned_steps, left=report.divergences,
                     predicted_ms=round(1e3 * (report.predicted_seconds or 0), 2), report=str(report)[:600])
        budget.close()
    found["bits"] = _bits(model)
    print("RESULT " + json.dumps(found), flush=True)


def _in_process(stage, begun, **asked):
    """What was found, or None; said either way."""
    left = seconds_left(begun)
    what = {k: v for k, v in asked.items() if k != "name"}
    if left < 8:
        say(stage, **what, skipped="no time left")
        return None
    command = [sys.executable, "-m", "gpu_check", "--out", os.environ["TIDEPOOL_CHECK_OUT"], "--training",
               json.dumps(asked)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        say(stage, **what, skipped=f"cut off after {left:.0f} s")
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        say(stage, **what, failed=(done.stderr or done.stdout).strip()[-400:])
        return None
    found = json.loads(lines[0].removeprefix("RESULT "))
    say(stage, **what, **found)
    return found


# ---- comparisons


def _compare(name, rivals):
    """Plainly twice, which says whether plain training repeats its own bits; shares of what that
    reserves; each rival, and a budget of what it reserves."""
    begun = time.monotonic()
    plain = _in_process(name, begun, name=name, how="plain")
    if plain is None:
        return
    for share in SHARES[:1]:
        _in_process(name, begun, name=name, how="tidepool", share=share, peak=int(plain["reserved"] * share))
    again = _in_process(name, begun, name=name, how="plain")
    say(name, plain_repeats_its_bits=bool(again) and again["bits"] == plain["bits"])
    for how in rivals:
        found = _in_process(name, begun, name=name, how=how)
        if found is not None and found["reserved"] < plain["reserved"]:
            _in_process(name, begun, name=name, how="tidepool", beside=how, peak=found["reserved"])
    for share in SHARES[1:]:
        _in_process(name, begun, name=name, how="tidepool", share=share, peak=int(plain["reserved"] * share))


def compare_gpt2():
    _compare("gpt2_bf16", ("checkpoint", "save_on_cpu", "offloaded optimizer"))


def compare_llama():
    _compare("llama_bf16", ("checkpoint",))


def compare_resnet():
    _compare("resnet50_fp32", ("checkpoint", "save_on_cpu"))


def compare_resnet_bf16():
    _compare("resnet50_bf16", ("checkpoint",))


def largest_batch():
    """GPT-2's rows in 24 GiB: doubled until it does not fit, then once halved between."""
    begun = time.monotonic()
    for how in ("plain", "checkpoint", "tidepool"):
        fits, rows, step = 0, 4, 4
        while step >= 1 and seconds_left(begun) > 8:
            found = _in_process("largest_batch", begun, name="gpt2_bf16", how=how, rows=rows, steps=1,
                                peak=LARGEST_IN)
            if found is not None and found["reserved"] <= LARGEST_IN:
                fits, step = rows, rows
                rows *= 2
            else:
                step = (rows - fits) // 2 if fits else 0
                rows = fits + step
                if step < max(1, fits // 2):
                    break
        say("largest_batch", how=how, rows=fits, inside=LARGEST_IN)
