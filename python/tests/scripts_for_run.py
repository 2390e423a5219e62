"""Scripts of users who know nothing of Tidepool, for `tidepool-torch run`."""

SMALL = """\
import os, sys, torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
steps, micro = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
model = nn.Sequential(*[nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.1))
                        for _ in range(8)], nn.Linear(128, 10))
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
"""

TRAINS = SMALL + """\
for step in range(steps):
    for _ in range(micro):
        x, y = torch.randn(2048, 128), torch.randint(10, (2048,))
        loss = nn.functional.cross_entropy(model(x), y) / micro
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", float(loss.detach()).hex())
model.eval()
with torch.no_grad():
    print("evaluated", float(model(torch.ones(1, 128)).sum()).hex())
print("environment", os.environ.get("LD_PRELOAD"), os.environ.get("TIDEPOOL_RUN"), sys.argv[1:],
      __name__, os.path.basename(__file__))
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "saved.pt")
sys.exit(7)
"""

SAVES_WHEN_INTERRUPTED = SMALL + """\
import signal
class Last(nn.Module):
    def forward(self, x):
        if Last.armed:
            os.kill(os.getpid(), signal.SIGINT)
        return x
Last.armed = False
model.append(Last())
try:
    for step in range(steps):
        x, y = torch.randn(2048, 128), torch.randint(10, (2048,))
        Last.armed = step == steps - 1
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
except KeyboardInterrupt:
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "saved.pt")
    raise
"""

UNEQUAL = TRAINS.replace("loss.backward()", """\
loss.backward()
        if step == 2:  # something that depends on more than the step
            mark = "mark-" + str(len([f for f in os.listdir(".") if f.startswith("mark-")]))
            open(mark, "w").close()
            if mark == "mark-1":
                model[0][0].bias.grad.add_(1)""")

RAISES = SMALL + """\
for step in range(steps):
    x, y = torch.randn(2048, 128), torch.randint(10, (2048,))
    if step == 3:
        y = y[:5]
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
"""

NO_TRAINING = """\
import torch
print(torch.ones(3).sum().item())
"""

TWO_OPTIMIZERS = """\
import sys, torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
one, other = [nn.Sequential(*[nn.Sequential(nn.Linear(128, 128), nn.Tanh()) for _ in range(6)])
              for _ in range(2)]
teacher = nn.Linear(128, 128)
first = torch.optim.Adam(one.parameters(), foreach=False)
second = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9, foreach=False)
for step in range(int(sys.argv[1])):
    x = torch.randn(2048, 128)
    with torch.no_grad():
        wanted = teacher(x)
    first.zero_grad()
    (one(x) - wanted).square().mean().backward()
    first.step()
    second.zero_grad()
    (other(one(x).detach()) - wanted).square().mean().backward()
    second.step()
"""

TRAINER = """\
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
torch.set_num_threads(1)
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=64, n_embd=64, n_layer=3, n_head=4))
random = torch.Generator().manual_seed(1)
tokens = [torch.randint(256, (64,), generator=random) for _ in range(128)]
arguments = TrainingArguments("out", per_device_train_batch_size=4, gradient_accumulation_steps=2,
                              max_steps=6, report_to=[], use_cpu=True, logging_steps=1,
                              save_steps=6, disable_tqdm=True)
data = [{"input_ids": t, "labels": t} for t in tokens]
Trainer(model=model, args=arguments, train_dataset=data).train()
"""

RANKS = """\
import torch
import torch.distributed as dist
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(0)
dist.init_process_group("gloo")
rank = dist.get_rank()
layers = [nn.Sequential(nn.Linear(128, 128), nn.ReLU()) for _ in range(8)]
model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers, nn.Linear(128, 10)))
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
for step in range(7):
    torch.manual_seed(100 * step + rank)
    x, y = torch.randn(2048, 128), torch.randint(10, (2048,))
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    with open(f"rank{rank}", "a") as file:
        print(step, float(loss.detach()).hex(), file=file)
dist.destroy_process_group()
"""

# Little batches: most bytes are the optimizer's state, which has to leave.
STATE_IS_MOST = """\
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(8)])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
for step in range(5):
    model(torch.randn(64, 256)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
