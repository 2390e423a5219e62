"""Other threads that read what is trained."""

import contextlib
import io
import threading

import pytest
import torch

import models
import tidepool_torch as tidepool
from tidepool_torch.base import primitives, running_ops
from tidepool_torch.planning.planning import machine_of
from training import Ran, Style, bits, body, differences, one_step, plain, state_of

STYLE = Style()


@pytest.mark.skipif(primitives.SWAPS_ONLY, reason="what the thread keeps is more than form B's plan knows")
def test_threads_read_between_steps_and_find_what_is_trained():
    training = models.make(models.tiny_gpt)
    torch.manual_seed(5)
    found, failures, over = [], [], threading.Event()

    def save(budget):
        try:
            while not over.is_set():
                with budget.reading():
                    assert not budget._runner.inside
                    model = {n: v.clone() for n, v in training.model.state_dict().items()}
                    state = training.optimizer.state_dict()["state"]
                    moments = sum(float(s["exp_avg"].double().sum()) for s in state.values())
                    found.append((budget.steps, model, moments))
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)

    with tidepool.fit(training.model, training.optimizer, peak="60%", report=False, evaluations=100,
                      min_bytes=1024, machine=machine_of(1e9, 1e9, alignment=64)) as budget:
        saver = threading.Thread(target=save, args=(budget,))
        saver.start()
        losses, between = [], {}
        for n in range(8):
            losses.append(one_step(training, n, STYLE, budget.step))
            between[n + 1] = {k: v.clone() for k, v in training.model.state_dict().items()}
            while not any(steps == n + 1 for steps, _, _ in found) and not failures:
                over.wait(0.001)
        over.set()
        saver.join()
        assert budget.report().moved_in > 0
    assert failures == []
    assert differences(plain(models.tiny_gpt, 8, STYLE), Ran(losses, state_of(training))) == []
    assert {steps for steps, _, _ in found} >= set(range(1, 9))
    for steps, model, _ in found:
        assert steps not in between or all(torch.equal(v, between[steps][n])
                                           for n, v in model.items())


def test_reading_inside_of_a_step_would_wait_for_itself():
    training = models.make(models.tiny_gpt)
    with tidepool.fit(training.model, training.optimizer, peak="60%", report=False) as budget:
        with budget.step(), pytest.raises(tidepool.TidepoolError, match="would wait for"):
            with budget.reading():
                pass
        with budget.reading():
            assert budget.steps == 1
            with pytest.raises(tidepool.TidepoolError, match="for whose end it would wait"):
                with budget.step():
                    pass
        one_step(training, 1, STYLE, budget.step)


def test_bytes_stay_while_an_op_of_another_thread_runs_on_them():
    tensor = torch.arange(4.0)
    storage = primitives.storage_of(tensor)
    inside, go_on, order = threading.Event(), threading.Event(), []

    def read():
        with running_ops.on([storage]):
            inside.set()
            go_on.wait()
            order.append("read")

    def move():
        primitives.set_away(storage, "away")
        order.append("moved")

    threads = [threading.Thread(target=f) for f in (read, move)]
    threads[0].start()
    inside.wait()
    threads[1].start()
    while not running_ops._to_move:
        pass
    assert order == []
    go_on.set()
    for t in threads:
        t.join()
    assert order == ["read", "moved"] and not primitives.has_bytes(storage)


@pytest.mark.skipif(primitives.SWAPS_ONLY, reason="torch 1.13 lets go of tensors that a walk has found")
@pytest.mark.parametrize("in_the_thread", [False, True])
def test_ops_of_threads_read_whole_values_in_the_middle_of_steps_or_raise_by_name(in_the_thread):
    """Steps in the main thread, or in one that is seen itself."""
    training = models.make(models.tiny_gpt)
    wrong, sums, errors, over = [], [], [], threading.Event()

    def read():
        try:
            while not over.is_set():
                for name, p in training.model.named_parameters():
                    try:
                        total = float(p.detach().double().abs().sum())
                        sums.append(total)
                        if not 0 <= total < 1e9:
                            wrong.append((name, total))
                    except RuntimeError as error:
                        errors.append(str(error))
        except BaseException as error:  # pylint: disable=broad-except
            wrong.append(error)

    losses = []

    def train():
        torch.manual_seed(5)
        with tidepool.fit(training.model, training.optimizer, peak="50%", report=False, home=False,
                          evaluations=100, min_bytes=1024,
                          machine=machine_of(1e9, 1e9, alignment=64)) as budget:
            readers = [threading.Thread(target=read) for _ in range(2)]
            for thread in readers:
                thread.start()
            for n in range(12):
                losses.append(one_step(training, n, STYLE, budget.step))
            over.set()
            for thread in readers:
                thread.join()
            assert budget.report().moved_in > 0

    if in_the_thread:
        trainer = threading.Thread(target=train)
        trainer.start()
        trainer.join()
    else:
        train()
    assert wrong == [] and sums
    assert all("is not on the device" in e for e in errors)
    assert differences(plain(models.tiny_gpt, 12, STYLE), Ran(losses, state_of(training))) == []


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="a torch without a compiler")
def test_the_compiler_works_in_threads_and_beside_them():
    def compiled(factor):
        return float(torch.compile(lambda x: (x * factor).sum(), backend="eager", fullgraph=True)(
            torch.ones(3)))

    found, over = [], threading.Event()

    def run():
        found.append(compiled(2))
        over.wait()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        found.append(compiled(3))
    finally:
        over.set()
        thread.join()
    assert sorted(found) == [6.0, 9.0]


def test_state_dict_in_another_thread_is_of_the_end_of_the_step_that_runs():
    training = models.make(models.tiny_gpt)
    with tidepool.fit(training.model, training.optimizer, peak="60%", report=False, evaluations=100,
                      min_bytes=1024, machine=machine_of(1e9, 1e9, alignment=64)) as budget:
        for n in range(4):
            one_step(training, n, STYLE, budget.step)
        found = []

        def take():
            state = training.optimizer.state_dict()["state"]
            found.append({k: v["exp_avg"].clone() for k, v in state.items()})

        thread = threading.Thread(target=take)
        with budget.step():
            thread.start()
            body(training, [training.batch(4)], STYLE)
        thread.join()
        with budget.resident():
            now = [s["exp_avg"] for s in training.optimizer.state.values()]
            assert all(torch.equal(a, b) for a, b in zip(now, found[0].values()))


def test_checkpoints_are_saved_in_the_middle_of_steps():
    training = models.make(models.tiny_gpt)
    errors, sizes, over = set(), set(), threading.Event()

    def save():
        while not over.is_set():
            file = io.BytesIO()
            try:
                torch.save([training.model.state_dict(), training.optimizer.state_dict()], file)
                sizes.add(len(torch.load(io.BytesIO(file.getvalue()))))
            except RuntimeError as error:
                errors.add(str(error))

    torch.manual_seed(5)
    with tidepool.fit(training.model, training.optimizer, peak="50%", report=False, home=False,
                      evaluations=100, min_bytes=1024,
                      machine=machine_of(1e9, 1e9, alignment=64)) as budget:
        savers = [threading.Thread(target=save) for _ in range(2)]
        # What they take while a step is recorded counts as its ops'.
        losses = [one_step(training, n, STYLE, budget.step) for n in range(2)]
        for thread in savers:
            thread.start()
        try:
            losses += [one_step(training, n, STYLE, budget.step) for n in range(2, 12)]
        finally:
            over.set()
            for thread in savers:
                thread.join()
    assert not {e for e in errors if "is not on the device" not in e} and sizes <= {2}
    assert differences(plain(models.tiny_gpt, 12, STYLE), Ran(losses, state_of(training))) == []


@pytest.mark.parametrize("share", ["55%", "65%", "75%"])
@pytest.mark.parametrize("allow", [("swap",), ("swap", "recompute")])
@pytest.mark.parametrize("when", ["begin", "forward", "backward", "update"])
def test_state_dict_inside_a_step_is_of_now(share, allow, when):
    """What it hands out of tensors that are away then."""

    def look(training):
        state = training.optimizer.state_dict()["state"]
        found = [*training.model.state_dict().values(), *(v for of in state.values() for v in of.values())]
        return [bits(v.clone()) for v in found]  # numpy would pin the tensor itself

    def train(budget_of):
        training = models.make(models.tiny_gpt)
        torch.manual_seed(5)
        budget = budget_of(training)
        found = []
        for n in range(6):
            x, y = training.batch(n)
            with budget.step() if budget else contextlib.nullcontext():
                def at(place):
                    if place == when:
                        found.extend(look(training))

                at("begin")
                loss = training.loss(training.model, x, y)
                at("forward")
                loss.backward()
                at("backward")
                training.optimizer.step()
                at("update")
                training.optimizer.zero_grad()
        if budget:
            budget.close()
        return found

    expected = train(lambda _: None)
    found = train(lambda t: tidepool.fit(t.model, t.optimizer, peak=share, report=False, evaluations=100,
                                         allow=allow, min_bytes=1024,
                                         machine=machine_of(1e9, 1e9, alignment=64)))
    assert found == expected
