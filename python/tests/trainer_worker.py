"""One rank of a training by a trainer, plainly and then inside a budget; prints what came of it.
`torchrun --nproc-per-node 2 trainer_worker.py transformers|lightning folder`"""

import json
import os
import sys

import torch

torch.set_num_threads(1)

from frameworks import Tally, differences, options, state_of, tallied


def transformers(folder, callbacks):
    import test_transformers as tests
    made = tests.trainer(folder, callbacks, rows=256, ddp_backend="gloo", save_strategy="no")
    made.train()
    return state_of(made.model, made.optimizer.optimizer)


def lightning(folder, callbacks):
    import test_lightning as tests
    return tests.whole_state(*tests.run(
        folder, callbacks, batches=64, strategy="ddp", devices=int(os.environ["WORLD_SIZE"])))


def main(name, folder):
    if name == "transformers":
        from tidepool_torch.integrations.transformers import TidepoolCallback
        run = transformers
    else:
        from tidepool_torch.integrations.lightning import TidepoolCallback
        run = lightning
    tally = Tally()
    plain = run(f"{folder}/plain", [])
    inside = run(f"{folder}/inside", [tallied(TidepoolCallback, tally)(**options(peak="75%"))])
    told = json.dumps({"differences": differences(plain, inside), **vars(tally)})
    os.write(1, f"RANK {told}\n".encode())  # whole, beside what the other rank writes


if __name__ == "__main__":
    main(*sys.argv[1:])
