"""What a user reads and gets: reports, exports, verify(), record(), plan(), messages."""

import json
import random
import re

import pytest
import torch

import models
import tidepool_torch as tidepool
from tidepool_torch.running import prediction
from tidepool_torch.planning.planning import machine_of
from training import Style, body, differences, one_step, plain, state_of, Ran

STYLE = Style()


def fit(training, peak="60%", **more):
    settings = {"report": False, "evaluations": 50, "min_bytes": 1024,
                "machine": machine_of(2e7, 2e7, alignment=64), **more}
    return tidepool.fit(training.model, training.optimizer, peak=peak, **settings)


def trained(build=models.tiny_gpt, steps=4, **more):
    training = models.make(build)
    torch.manual_seed(5)
    budget = fit(training, **more)
    for n in range(steps):
        one_step(training, n, STYLE, budget.step)
    return training, budget


def test_a_report_says_what_a_budget_cost(capsys):
    training, budget = trained(report=True)
    report = budget.report()
    assert report.planned_steps == 2 and report.steps == 4
    assert report.moved_out > 0 and report.holders[0][1] > 0
    assert report.measured_seconds > 0 and report.predicted_seconds > 0
    assert "4 steps, 2 of them planned" in str(report)
    json.dumps(report.as_dict())
    said = capsys.readouterr().err
    assert re.search(r"tidepool: [\d.]+ KiB of [\d.]+ KiB: \d+ tensors swapped \(.* a step\), \d+ "
                     r"ops recomputed; predicted [+-][\d.]+ %, of processor time [+-][\d.]+ %; "
                     r"planned in [\d.]+ s, proved", said)
    assert re.search(r"predicted \d+ \([\d.]+ x the prediction\)", str(report))
    assert re.search(r"tidepool: step 3 took \d+ ms \(predicted \d+\)", said)
    assert f"{(report.measured_seconds / report.unlimited_seconds - 1) * 100:+.1f} % of what" in str(
        report)
    budget.close()
    assert budget.report().moved_out == report.moved_out


def test_a_prediction_has_a_look_at_each_call_and_what_copies_take():
    _, budget = trained()
    planned, link = budget._plans[0], 2e7
    info = planned.plan.info
    looks = len(planned.program.recording.dispatched) * prediction.seconds_of_a_look()
    copies = (info.copied_out + info.copied_in) / link
    assert looks > 0 and copies > 0
    assert planned.prediction.seconds == pytest.approx(info.time / 1e9 + looks)
    assert planned.prediction.processor >= info.unlimited / 1e9 + looks + copies * 0.999
    budget.close()


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("build", [models.tiny_gpt, models.tiny_resnet, models.odd])
def test_all_of_what_a_step_takes_moves_nothing(build, ahead, capsys):
    training = models.make(build)
    batch = training.batch(0)
    more = {"step": lambda: body(training, [batch], STYLE)} if ahead else {}
    with fit(training, peak="100%", report=True, **more) as budget:
        for _ in range(5):
            with budget.step():
                body(training, [batch], STYLE)
        report = budget.report()
        assert report.moved_out + report.moved_in + report.reruns == 0
        assert budget.plan.info.swapped_tensors + budget.plan.info.recomputed_ops == 0
        assert budget.peak == report.unlimited_peak
    assert "needs nothing: 0 tensors swapped" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["plan.html", "trace.json", "plan.svg", "plan.pickle",
                                  "x.plan.json", "x.program.json"])
def test_exports(tmp_path, name):
    _, budget = trained()
    path = tmp_path / name
    budget.export(path)
    assert path.stat().st_size > 500
    with pytest.raises(ValueError, match="ends in .html"):
        budget.export(tmp_path / "plan.txt")
    with pytest.raises(ValueError, match="a plan is .plan.json, .* Next: x.plan.json, or trace.json"):
        budget.export(tmp_path / "plan.json")
    budget.close()


@pytest.mark.parametrize("fused", [False, True])
def test_a_page_shows_gradients_that_are_gone_behind_the_step(tmp_path, fused):
    model = models.make(models.tiny_gpt).model
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused)
    training = models.Training(model, optimizer, models.make(models.tiny_gpt).batch,
                               models.make(models.tiny_gpt).loss)
    with fit(training) as budget:
        for n in range(3):
            one_step(training, n, STYLE, budget.step)
        kinds = {s.name.partition(".")[2]: s.kind
                 for s in budget._plans[0].program.recording.storages}
        budget.export(tmp_path / "plan.svg")
    assert all(kinds[f"{n}.grad"] == "gradient" for n, _ in model.named_parameters())
    assert "gradient</text>" in (tmp_path / "plan.svg").read_text()


def test_verify_compares_the_users_own_steps():
    training, budget = trained(models.odd)
    batch = training.batch(70)
    verdict = budget.verify(lambda: body(training, [batch], STYLE), steps=3)
    assert verdict and verdict.planned_steps == 3
    assert str(verdict) == "the same bits after 3 steps, 3 of them planned"
    budget.close()


def test_a_cost_below_nothing_is_doubted():
    assert prediction.overhead(1.1, 1.0) == "+10.0 %" and prediction.overhead(0.99, 1.0) == "-1.0 %"
    assert prediction.overhead(0.8, 1.0) == "-20.0 % (busy machine when its ops were recorded)"


def test_verify_before_the_first_step():
    training = models.make(models.tiny_gpt)
    budget = fit(training)
    batch = training.batch(0)
    verdict = budget.verify(lambda: body(training, [batch], STYLE), steps=4)
    assert verdict and verdict.planned_steps == 2
    budget.close()


def test_verify_of_steps_without_a_plan_says_that_it_says_nothing():
    training = models.make(models.tiny_gpt)
    budget = fit(training)
    batch = training.batch(0)
    verdict = budget.verify(lambda: body(training, [batch], STYLE), steps=1)
    assert verdict and verdict.planned_steps == 0
    assert "says nothing of a plan. Next: verify() behind the first planned step" in str(verdict)
    budget.close()


def test_verify_finds_a_step_that_is_not_the_same_twice():
    training, budget = trained(models.tiny_gpt)
    batch = training.batch(70)
    times = []

    def step():
        times.append(0)
        training.optimizer.param_groups[0]["lr"] = 1e-3 * len(times)
        return body(training, [batch], STYLE)

    verdict = budget.verify(step, steps=2)
    assert not verdict and "head.weight" in str(verdict) or "tokens.weight" in str(verdict)
    budget.close()


def net_and(beside=()):
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(6)))
    optimizer = torch.optim.SGD([*model.parameters(), *beside], lr=0.01, momentum=0.9)
    return model, optimizer, torch.ones(256, 64)


def verdict_of(model, optimizer, step, peak="80%"):
    """Of planned steps of which something moves."""
    budget = tidepool.fit(model, optimizer, peak=peak, report=False, evaluations=50, min_bytes=1024,
                          machine=machine_of(2e7, 2e7, alignment=64))
    for _ in range(3):
        with budget.step():
            step()
    verdict = budget.verify(step)
    assert verdict.planned_steps == 3
    assert budget.report().moved_out + budget.report().reruns > 0
    budget.close()
    return verdict


def test_verify_puts_back_parameters_that_an_optimizer_alone_has():
    head = torch.nn.Linear(64, 64)
    model, optimizer, x = net_and(head.parameters())

    def step():
        loss = head(model(x)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        return {"loss": loss.detach(), "nothing": float("nan"), "more": (loss.detach() * 2, [None])}

    verdict = verdict_of(model, optimizer, step)
    assert verdict and str(verdict) == "the same bits after 3 steps, 3 of them planned"


def test_verify_puts_back_schedulers_and_random_states():
    model, optimizer, x = net_and()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    def step():
        loss = (model(x) * random.random()).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        return loss.item()

    assert verdict_of(model, optimizer, step)
    assert scheduler.last_epoch == 6 and optimizer.param_groups[0]["lr"] == 0.01 / 8


DIFFERENT = {
    "a number": lambda n, loss: 0.0 if n % 2 else -0.0,
    "in a dict": lambda n, loss: {"loss": [loss + n]},
    "a kind": lambda n, loss: n if n % 2 else float(n),
    "the dtype": lambda n, loss: (torch.zeros(1, dtype=(torch.int32, torch.float32)[n % 2]),)}


@pytest.mark.parametrize("name", DIFFERENT)
def test_verify_compares_all_that_a_step_returns(name):
    model, optimizer, x = net_and()
    calls = []

    def step():
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        calls.append(0)
        return DIFFERENT[name](len(calls), loss.detach())

    verdict = verdict_of(model, optimizer, step)
    assert verdict.differs == ["step 1", "step 2", "step 3"]


def test_verify_of_nothing_is_refused():
    training, budget = trained(models.tiny_gpt)
    with pytest.raises(ValueError, match="steps=0: 1 or more"):
        budget.verify(lambda: None, steps=0)
    with pytest.raises(tidepool.TidepoolError, match="changed nothing and returned no number.*Next"):
        budget.verify(lambda: None)
    budget.close()


def test_a_step_becomes_a_program_and_a_plan(tmp_path):
    training = models.make(models.tiny_gpt)
    batch = training.batch(0)
    path = tmp_path / "step.json"

    def step():
        body(training, [batch], STYLE)

    program = tidepool.record(training.model, training.optimizer, step, path=path, min_bytes=1024)
    assert json.loads(path.read_text()) == program
    kinds = {t["kind"] for t in program["tensors"]}
    assert {"weight", "optimizer_state", "activation"} <= kinds
    outlook = tidepool.plan(training.model, training.optimizer, step, peak="60%", min_bytes=1024,
                            run=True, evaluations=50, machine=machine_of(2e7, 2e7, alignment=64))
    assert outlook.swapped_tensors + outlook.recomputed_ops > 0
    assert "predicted" in str(outlook)


def test_a_budget_that_is_too_small_names_the_smallest():
    training = models.make(models.tiny_gpt)
    budget = fit(training, peak=60_000)
    one_step(training, 0, STYLE, budget.step)
    with pytest.raises(tidepool.BudgetInfeasible) as caught:
        one_step(training, 1, STYLE, budget.step)
    message = str(caught.value)
    assert re.match(r"cannot train inside 58.6 KiB: op \d+ \S+ needs [\d.]+ KiB at once: .*smallest "
                    r"budget [\d.]+ KiB. Next: a larger budget", message)
    budget.close()
    again = models.make(models.tiny_gpt)
    budget = fit(again, peak=caught.value.smallest)
    for n in range(4):
        one_step(again, n, STYLE, budget.step)
    assert budget.report().planned_steps == 2
    budget.close()


def test_what_is_away_says_so_by_name():
    training, budget = trained(peak="45%", home=False)
    names = {id(p): n for n, p in training.model.named_parameters()}
    raised = []
    for parameter, state in training.optimizer.state.items():
        for key, value in state.items():
            for use in (torch.Tensor.numpy, torch.Tensor.zero_):  # one an op that PyTorch sees
                try:
                    use(value)
                except RuntimeError as error:
                    raised.append((f"{names[id(parameter)]}.{key}", str(error)))
    assert raised
    for name, message in raised:
        assert re.fullmatch(
            rf"tidepool: {re.escape(name)} is not on the device \(planned until op \d+\)\. It was "
            r"read or written outside a step of its budget, or by something that PyTorch's "
            r"dispatcher does not see\. Use budget\.resident\(\), or exclude it: "
            rf'fit\(\.\.\., keep=\["{re.escape(name)}"\]\)', message.splitlines()[0])
    with budget.resident():
        for state in training.optimizer.state.values():
            [v.numpy() for v in state.values()]
    budget.close()


def test_a_budget_that_needs_nothing_installs_no_mode():
    from torch.utils._python_dispatch import _get_current_dispatch_mode
    training, budget = trained(peak="1GiB")
    with budget.step():
        assert _get_current_dispatch_mode() is None
        body(training, [training.batch(4)], STYLE)
    budget.close()
    ran = Ran([], state_of(training))
    expected = plain(models.tiny_gpt, 4)
    assert differences(Ran([], expected.state), ran) != []  # one step more
    assert budget.report().steps == 5


@pytest.mark.parametrize("arguments,words", [
    ({"peak": "0%"}, "a percentage is above 0"), ({"peak": "12 parsecs"}, "peak='12 parsecs'"),
    ({"peak": -1}, "peak=-1"), ({"peak": "1GiB", "allow": "swap"}, "allow='swap'"),
    ({"peak": "1GiB", "keep": ["nobody"]}, "no parameter or buffer 'nobody'"),
    ({"peak": "1GiB", "time_limit": 0}, "time_limit=0")])
def test_arguments_that_make_no_sense(arguments, words):
    training = models.make(models.tiny_gpt)
    with pytest.raises(ValueError, match=re.escape(words)):
        tidepool.fit(training.model, training.optimizer, **arguments)



def test_compiled_models_are_refused():
    training = models.make(models.tiny_gpt)
    with pytest.raises(tidepool.TidepoolError, match="torch.compile.*Next: fit"):
        tidepool.fit(torch.compile(training.model), training.optimizer, peak="1GiB")


def test_a_model_of_small_tensors_just_trains():
    training = models.make(models.tiny_gpt)
    torch.manual_seed(5)
    budget = tidepool.fit(training.model, training.optimizer, peak="1GiB", report=False,
                          min_bytes=1 << 30)
    losses = [one_step(training, n, STYLE, budget.step) for n in range(4)]
    budget.close()
    assert differences(plain(models.tiny_gpt, 4), Ran(losses, state_of(training))) == []
