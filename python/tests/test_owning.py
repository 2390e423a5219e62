"""Models and optimizers whose bytes come from a file or from numpy."""

import numpy
import pytest
import torch

import tidepool_torch as tidepool
from frameworks import Tally, differences, layers, options, rows, state_of
from tidepool_torch.recording.owning import Owning
from tidepool_torch.base.primitives import storage_of


def loaded(tensor, path):
    torch.save(tensor, path)
    return torch.load(path)


def test_what_a_file_gave_becomes_a_storage_that_can_move(tmp_path):
    read = loaded(torch.arange(100.0), tmp_path / "a")
    assert not storage_of(read).resizable()
    tied = [torch.nn.Parameter(read), torch.nn.Parameter(read.view(10, 10).t())]
    del read
    owning = Owning()
    owning.own(tied, lambda storage: False)
    assert owning.bytes == 400
    assert all(storage_of(p).resizable() for p in tied)
    assert storage_of(tied[0])._cdata == storage_of(tied[1])._cdata
    assert tied[0].tolist() == list(range(100)) and tied[1].stride() == (1, 10)


def test_what_others_look_at_stays_theirs(tmp_path):
    exported = torch.nn.Parameter(torch.ones(4))
    array = exported.detach().numpy()
    viewed = torch.nn.Parameter(loaded(torch.ones(8), tmp_path / "a"))
    view = viewed.detach()[3:]
    shared = torch.nn.Parameter(torch.ones(4)).share_memory_()
    owning = Owning()
    for _ in range(2):
        owning.own([exported, viewed, shared], lambda storage: False)
    assert owning.bytes == 0
    with torch.no_grad():
        exported.add_(1)
        viewed.add_(1)
    assert array.tolist() == [2] * 4 and view.tolist() == [2] * 5
    assert shared.is_shared()
    del array, view
    owning.own([exported, viewed, shared], lambda storage: False)
    assert owning.bytes == 16 + 32


def train(model, optimizer, first, last, budget=None):
    data = rows(256)
    losses = []
    for number in range(first, last):
        torch.manual_seed(number)
        x, y = data.tensors
        if budget is not None:
            with budget.step():
                losses.append(one_step(model, optimizer, x, y))
        else:
            losses.append(one_step(model, optimizer, x, y))
    return losses


def one_step(model, optimizer, x, y):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def resumed(folder):
    model = layers()
    model.load_state_dict(torch.load(folder / "model.pt"), assign=True)
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.load_state_dict(torch.load(folder / "optimizer.pt"))
    return model, optimizer


def test_a_resumed_training_moves_as_one_from_the_start(tmp_path):
    model = layers()
    optimizer = torch.optim.AdamW(model.parameters())
    train(model, optimizer, 0, 2)
    torch.save(model.state_dict(), tmp_path / "model.pt")
    torch.save(optimizer.state_dict(), tmp_path / "optimizer.pt")

    plain = resumed(tmp_path)
    expected = train(*plain, 2, 8)
    inside = resumed(tmp_path)
    budget = tidepool.fit(*inside, **options())
    assert train(*inside, 2, 8, budget) == expected
    tally = Tally()
    tally.take(budget)
    assert tally.moved > 0 and tally.planned_steps == 4
    moved = {t.name for t in budget._plans[0].program.tensors if not t.pinned}
    budget.close()
    assert differences(state_of(*plain), state_of(*inside)) == []
    assert any("exp_avg" in name for name in moved)


def test_a_weight_that_numpy_looks_at_stays_where_numpy_sees_it():
    plain, inside = ((m, torch.optim.AdamW(m.parameters())) for m in (layers(), layers()))
    expected = train(*plain, 0, 6)
    array = inside[0][4].weight.detach().numpy()
    budget = tidepool.fit(*inside, **options())
    assert train(*inside, 0, 6, budget) == expected
    tally = Tally()
    tally.take(budget)
    assert tally.moved > 0 and tally.planned_steps == 4
    assert array.ctypes.data == inside[0][4].weight.data_ptr()
    budget.close()
    assert differences(state_of(*plain), state_of(*inside)) == []
    assert numpy.array_equal(array, plain[0][4].weight.detach().numpy())


@pytest.mark.parametrize("held", [False, True])
def test_an_array_of_a_weight_made_between_planned_steps(held):
    """One that is kept goes on to show the weight, which moves no more; one that is not changes
    nothing."""
    def run(fitted):
        model = layers()
        optimizer = torch.optim.AdamW(model.parameters())
        budget = tidepool.fit(model, optimizer, **options()) if fitted else None
        losses, arrays, seen = [], [], []
        for number in range(9):
            losses += train(model, optimizer, number, number + 1, budget)
            if number >= 4:
                arrays.append(model[4].weight.detach().numpy())
                seen.append([float(array.sum()) for array in arrays])
                if not held:
                    arrays.clear()
        report = None
        if fitted:
            report = budget.report()
            budget.close()
        return losses, seen, state_of(model, optimizer), report

    expected, seen, state, _ = run(False)
    losses, seen_inside, state_inside, report = run(True)
    assert losses == expected and seen_inside == seen
    assert differences(state, state_inside) == []
    assert report.moved_in > 0
    assert report.planned_steps == (6 if held else 7)
