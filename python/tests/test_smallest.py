"""The smallest budget that a message names is enough."""

import re

import pytest
import torch

import models
import tidepool_torch as tidepool
from tidepool_torch.base import device, memory
from tidepool_torch.recording import recording
from tidepool_torch.planning.planning import machine_of
from training import Style, one_step

OPTIONS = {"report": False, "evaluations": 30, "min_bytes": 1024}


def refused(build, peak):
    training = models.make(build)
    with tidepool.fit(training.model, training.optimizer, peak=peak, machine=machine_of(2e9, 2e9),
                      **OPTIONS) as budget:
        try:
            for n in range(3):
                one_step(training, n, Style(), budget.step)
        except tidepool.BudgetInfeasible as error:
            return error
    return None


@pytest.mark.parametrize("build", [models.tiny_gpt, models.tiny_resnet])
def test_what_is_named_is_enough_in_bytes_and_in_words(build):
    error = refused(build, 50_000)
    said = re.search(r"smallest budget ([\d.]+) (\wiB)\. Next", str(error))
    assert refused(build, error.smallest) is None
    assert refused(build, "".join(said.groups())) is None


def test_a_result_has_no_workspace_of_a_page(monkeypatch):
    size = 4 << 20

    class Counts:
        def begin(self):
            return 0

        def most_since(self, begun):
            return memory.block_bytes(size)  # whole pages, the block's header among them

        def without_holes(self):
            return None

    recorder = recording.Recorder(device.HOST, [], list)
    monkeypatch.setattr(device.HOST, "counts", Counts())
    made = recorder.run(torch.ops.aten.empty.memory_format, ([size],), {"dtype": torch.uint8})
    assert made.nbytes == size
    assert [op.workspace for op in recorder.recording.ops] == [0]


def test_what_is_measured_may_be_more_the_next_time(monkeypatch):
    monkeypatch.setattr(recording.Recorder, "_inexact", lambda self: 0)
    exact = refused(models.tiny_resnet, 20_000)
    monkeypatch.setattr(recording.Recorder, "_inexact", lambda self: 1 << 20)
    assert refused(models.tiny_resnet, 20_000).smallest > exact.smallest + (1 << 19)
