"""tidepool-torch: doctor, and run with scripts that know nothing of Tidepool."""

import json
import os
import re
import subprocess
import sys

import pytest
import scripts_for_run as scripts
import torch

from tidepool_torch.base.library import HOW_TO_INSTALL
from tidepool_torch.user import cli, diagnosis
from tidepool_torch.base import hook
from tidepool_torch.base.errors import in_words

PACKAGE = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
needs_hook = pytest.mark.skipif(hook.hook_path() is None,
                                reason="no allocator hook: TIDEPOOL_HOOK names none")
# Small models: most of their tensors are below the usual size, and planning is quick.
FAST = ["--evaluations", "20", "--min-bytes", "4096"]


@pytest.fixture
def run(tmp_path):
    """run(script, [option...], [argument...]) -> CompletedProcess, in a folder of its own."""

    def do(script, options, arguments=(), **environment):
        path = tmp_path / "train.py"
        path.write_text(script)
        command = [sys.executable, "-m", "tidepool_torch", "run", *options, *FAST, "--",
                   str(path), *arguments]
        return start(command, tmp_path, **environment)

    return do


def start(command, folder, **environment):
    # The hook, where these tests have it loaded, is not the script's.
    inherited = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                          timeout=300, env={**inherited, "PYTHONPATH": PACKAGE, **environment})


def plainly(tmp_path, script, arguments):
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "train.py").write_text(script)
    done = start([sys.executable, "train.py", *arguments], folder)
    saved = folder / "saved.pt"
    return done, torch.load(saved) if saved.exists() else None


def same(one, other):
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    return one == other


# ---- doctor


def test_doctor_says_what_is_there(tmp_path):
    done = start([sys.executable, "-m", "tidepool_torch", "doctor"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"torch: {torch.__version__}, has what is needed" in done.stdout
    assert "a plan: 2.2 MiB of 3.0 MiB, 1 tensor swapped, proved" in done.stdout
    assert "this version was run on a simulated GPU, on no real one" in done.stdout


def test_doctor_names_what_is_missing_and_the_next_step(tmp_path):
    done = start([sys.executable, "-m", "tidepool_torch", "doctor", "--json"], tmp_path,
                 TIDEPOOL_LIBRARY="/nowhere/libtidepool.so.1")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert not told["can_train"]
    library = next(f for f in told["findings"] if f["what"] == "libtidepool")
    assert not library["ok"] and library["needed"]
    assert "was not found" in library["found"] and library["next"].startswith("set TIDEPOOL_LIBRARY")


def test_doctor_and_import_without_torch(tmp_path):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", "
                                       "name='torch')\n")
    code = "import tidepool_torch as t\nprint(t.doctor())\nfrom tidepool_torch import fit\n"
    done = start([sys.executable, "-c", code], tmp_path,
                 PYTHONPATH=f"{tmp_path}{os.pathsep}{PACKAGE}")
    assert "MISSING torch: No module named 'torch'. Next: pip install torch" in done.stdout
    assert "ImportError: tidepool_torch.fit needs PyTorch" in done.stderr
    assert "Next: pip install torch (2.12 or newer)" in done.stderr


def test_the_package_runs_as_the_program(tmp_path):
    done = start([sys.executable, "-m", "tidepool_torch", "doctor"], tmp_path)
    assert done.returncode == 0 and "libtidepool" in done.stdout
    assert start([sys.executable, "-m", "tidepool_torch"], tmp_path).returncode == 2


def test_doctor_with_a_torch_that_does_not_load(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('libcufile.so.0: no such file')\n")
    done = start([sys.executable, "-m", "tidepool_torch", "doctor"], tmp_path,
                 PYTHONPATH=f"{tmp_path}{os.pathsep}{PACKAGE}")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "MISSING torch: libcufile.so.0: no such file. Next: pip install torch" in done.stdout


def test_finding_without_torch_installed_is_needed():
    assert all(f.next for f in diagnosis.findings() if f.needed and not f.ok)


# ---- run


@needs_hook
def test_script_trains_inside_the_budget_as_it_does_without(run, tmp_path):
    report = tmp_path / "report.json"
    done = run(scripts.TRAINS, ["--peak", "60%", "--report", str(report)], ["6"])
    assert done.returncode == 7, done.stderr
    without, saved = plainly(tmp_path, scripts.TRAINS, ["6"])
    assert done.stdout == without.stdout
    assert "None None ['6'] __main__ train.py" in done.stdout
    assert same(torch.load(tmp_path / "saved.pt"), saved)
    figures = json.loads(report.read_text())
    assert figures["steps"] == 6 and figures["planned_steps"] == 4 and not figures["divergences"]
    assert figures["moved_out"] + figures["reruns"] > 0
    assert figures["measured"] <= figures["budget"] + OWN_BOOKS
    assert "6 steps, 4 of them planned, 0 left their plan" in done.stderr
    # Two steps show what the share is of: their peak is the training's too, and said.
    assert figures["steps_without"] == 2
    # The recorded peak has whole pages of each block.
    assert figures["measured_without"] > 0.98 * figures["unlimited_peak"]
    assert (f"the allocator measured at most {in_words(figures['measured'])} in the steps inside the "
            "budget, with what recording one and planning took; "
            f"{in_words(figures['measured_without'])} in 2 steps before the budget was known, which "
            "is a share of what they take") in done.stderr


# Python's own objects that a run adds; a script's budget is a thousand times as much.
OWN_BOOKS = 256 << 10


def test_micro_batches_are_one_step(run, tmp_path):
    report = tmp_path / "report.json"
    done = run(scripts.TRAINS, ["--peak", "60%", "--report", str(report), "--quiet"], ["5", "3"])
    assert done.returncode == 7 and done.stderr == ""
    without, saved = plainly(tmp_path, scripts.TRAINS, ["5", "3"])
    assert done.stdout == without.stdout
    assert same(torch.load(tmp_path / "saved.pt"), saved)
    figures = json.loads(report.read_text())
    assert figures["steps"] == 5 and figures["divergences"] == 0
    assert figures["moved_out"] + figures["reruns"] > 0


def test_more_micro_batches_than_said_are_cut(run, tmp_path):
    report = tmp_path / "report.json"
    done = run(scripts.TRAINS, ["--peak", "60%", "--micro-batches", "2", "--report", str(report)],
               ["3", "4"])
    without, _ = plainly(tmp_path, scripts.TRAINS, ["3", "4"])
    assert done.stdout == without.stdout
    assert json.loads(report.read_text())["steps"] == 6


def test_step_ends_when_both_optimizers_have_stepped(run, tmp_path):
    report = tmp_path / "report.json"
    done = run(scripts.TWO_OPTIMIZERS, ["--peak", "75%", "--report", str(report)], ["6"])
    assert done.returncode == 0, done.stderr
    figures = json.loads(report.read_text())
    assert figures["steps"] == 6 and figures["trainings"] == 1
    assert figures["planned_steps"] > 0 and figures["moved_out"] + figures["reruns"] > 0


def test_module_runs_like_a_script(tmp_path):
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text("from mine import __name__ as parent\n" + scripts.TRAINS)
    done = start([sys.executable, "-m", "tidepool_torch", "run", "--peak", "60%", *FAST, "--",
                  "-m", "mine.train", "4"], tmp_path)
    assert done.returncode == 7, done.stderr
    assert done.stdout.count("loss") == 4 and "__main__ train.py" in done.stdout


def test_trainer_of_transformers_is_equal(run):
    pytest.importorskip("transformers")
    done = run(scripts.TRAINER, ["--peak", "65%", "--verify", "5"], HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stderr
    assert "equal to the last bit behind each of 5 steps" in done.stdout
    assert "3 steps ran by a plan" in done.stdout and " 0 bytes moved out" not in done.stdout


def test_ranks_of_torchrun_train_as_without(tmp_path):
    (tmp_path / "train.py").write_text(scripts.RANKS)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone",
                "--nproc-per-node", "2"]
    inside = [sys.executable, "-m", "tidepool_torch", "run", "--peak", "70%", *FAST, "--",
              str(tmp_path / "train.py")]
    losses = []
    for command in (["train.py"], ["--no-python", *inside]):
        done = start([*torchrun, *command], tmp_path)
        assert done.returncode == 0, done.stderr
        losses.append([(tmp_path / f"rank{rank}").read_text() for rank in range(2)])
        for rank in range(2):
            (tmp_path / f"rank{rank}").unlink()
    assert losses[0] == losses[1]
    assert done.stderr.count("3 of them planned, 0 left their plan") == 2
    assert "each moved 0 bytes out, 0 bytes back, ran 0" not in done.stderr


def test_script_without_training_is_told(run):
    done = run(scripts.NO_TRAINING, ["--peak", "1GiB"])
    assert done.returncode == 0 and done.stdout == "3.0\n"
    assert "no step of a training was seen" in done.stderr


def test_interrupted_script_saves_and_ends_with_130(run, tmp_path):
    done = run(scripts.SAVES_WHEN_INTERRUPTED, ["--peak", "60%"], ["6"])
    assert done.returncode == 130, done.stderr
    assert "tidepool: interrupted in step 6" in done.stderr
    assert "6 steps, " in done.stderr and "Traceback" not in done.stderr
    without, saved = plainly(tmp_path, scripts.SAVES_WHEN_INTERRUPTED, ["6"])
    assert "KeyboardInterrupt" in without.stderr
    assert same(torch.load(tmp_path / "saved.pt"), saved)


def test_exception_of_the_script_is_shown_as_python_does(run, tmp_path):
    done = run(scripts.RAISES, ["--peak", "60%"], ["6"])
    assert done.returncode == 1
    assert 'train.py", line' in done.stderr and "running.py" not in done.stderr
    assert "Expected input batch_size" in done.stderr


def test_budget_that_cannot_be_met_ends_with_4(run):
    done = run(scripts.TRAINS, ["--peak", "300KiB"], ["6"])
    assert done.returncode == 4
    assert "cannot train inside 300.0 KiB" in done.stderr and "smallest budget" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("options, said", [
    (["--peak", "10Gi"], "give bytes, a whole number above 0, or text such as '10GiB'"),
    (["--peak", "10G"], "argument --peak: '10G': give bytes, a whole number above 0"),
    (["--peak", "10gib"], "KiB, MiB, GiB, TiB, kB, MB, GB, TB), or a share such as '60%'"),
    (["--peak=-5%"], "argument --peak: '-5%': a percentage is above 0"),
    (["--peak", "120%"], "a percentage is above 0 and at most 100"),
    (["--peak", "1GiB", "--allow", "drop"], "swap, recompute, or swap,recompute"),
    (["--peak", "1GiB", "--host-dir", "/nowhere"], "there is no such folder"),
    (["--peak", "1GiB", "--micro-batches", "0"], "a whole number above 0"),
])
def test_wrong_usage_ends_with_2(run, options, said):
    done = run(scripts.NO_TRAINING, options)
    assert done.returncode == 2 and said in done.stderr


def test_nothing_may_move_and_the_budget_is_below_a_step(tmp_path):
    (tmp_path / "train.py").write_text(scripts.TRAINS)
    done = start([sys.executable, "-m", "tidepool_torch", "run", "--peak", "60%", "--min-bytes",
                  "1GiB", "--", "train.py", "4"], tmp_path)
    assert done.returncode == 4
    assert "none of its tensors may move: those below 1.0 GiB stay" in done.stderr
    assert "Next: a larger budget, or a smaller " in done.stderr


def cli_with(tmp_path, *arguments, stdout=subprocess.PIPE):
    (tmp_path / "train.py").write_text(scripts.TRAINS)
    return subprocess.run([sys.executable, "-m", "tidepool_torch", *arguments], cwd=tmp_path,
                          stdout=stdout, stderr=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": PACKAGE})


@pytest.mark.parametrize("option, value, said", [
    ("--report", "/absent/x", "'/absent/x': No such file or directory. Next: another file"),
    ("--host-dir", "/proc", "'/proc': no file can be made there: "),
    ("--planner", "foo", "planner='foo': there are auto, "),
    ("--seed", "x", "argument --seed: invalid int value: 'x'"),
    ("--min", "1MiB", "unrecognized arguments: --min"),
])
def test_values_that_cannot_be_end_with_2_before_the_script(tmp_path, option, value, said):
    done = cli_with(tmp_path, "run", "--peak", "1GiB", option, value, "--", "train.py", "1")
    assert done.returncode == 2 and said in done.stderr
    assert done.stdout == "" and "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["doctor"], ["doctor", "--json"]])
def test_a_full_stdout_is_one_line(tmp_path, arguments):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = cli_with(tmp_path, *arguments, stdout=full)
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["tidepool-torch: [Errno 28] No space left on device"]


def test_figures_that_cannot_be_written_are_one_line(run):
    done = run(scripts.NO_TRAINING, ["--peak", "1GiB", "--report", "/dev/full"])
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "the figures could not be written to /dev/full: No space left on device" in done.stderr


def test_script_that_fails_before_training_is_told_nothing_else(run):
    done = run("raise ValueError('mine')", ["--peak", "1GiB"])
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == "ValueError: mine"


def test_name_that_the_model_does_not_have_ends_with_2(run):
    done = run(scripts.TRAINS, ["--peak", "60%", "--keep", "nothing"], ["4"])
    assert done.returncode == 2
    assert "the model has no parameter or buffer 'nothing'" in done.stderr
    assert "no step of a training" not in done.stderr


def test_a_hook_that_is_not_there_is_named_with_its_place(run, tmp_path):
    done = run(scripts.NO_TRAINING, ["--peak", "1GiB"], TIDEPOOL_HOOK=str(tmp_path / "no.so"))
    assert (f"tidepool: there is no allocator hook at {tmp_path / 'no.so'}: bytes are counted by the C "
            f"library, peaks are not exact. Next: {HOW_TO_INSTALL}; or set TIDEPOOL_HOOK to the hook"
            ) in done.stderr.splitlines()


@needs_hook
def test_a_hook_that_is_loaded_from_elsewhere_is_not_missed(run, tmp_path):
    done = run(scripts.NO_TRAINING, ["--peak", "1GiB"], TIDEPOOL_HOOK=str(tmp_path / "no.so"),
               LD_PRELOAD=hook.hook_path())
    assert "no allocator hook" not in done.stderr


def test_script_that_is_not_there_ends_with_3(tmp_path):
    done = start([sys.executable, "-m", "tidepool_torch", "run", "--peak", "1GiB", "--",
                  "nothing.py"], tmp_path)
    assert done.returncode == 3 and "there is no script nothing.py" in done.stderr


def test_help_has_examples(capsys):
    with pytest.raises(SystemExit):
        cli.main(["run", "--help"])
    text = capsys.readouterr().out
    assert "tidepool-torch run --peak 10GiB -- train.py --epochs 3" in text and "exit code" in text


# ---- run --verify


@needs_hook
def test_verify_finds_the_script_equal(run):
    done = run(scripts.TRAINS, ["--peak", "60%", "--verify", "4"], ["9"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("equal to the last bit behind each of 4 steps")
    assert "2 steps ran by a plan" in done.stdout and "without a budget" in done.stdout
    assert " 0 bytes moved out, 0 ops" not in done.stdout
    assert done.stderr.count("loss") == 2 * 3  # the fourth step ends the script


@needs_hook
def test_verify_moves_state_where_the_budget_is_a_share(run):
    done = run(scripts.STATE_IS_MOST, ["--peak", "60%", "--verify", "3"])
    assert done.returncode == 0, done.stderr
    assert "1 step ran by a plan" in done.stdout


def test_verify_names_what_differs(run):
    done = run(scripts.UNEQUAL, ["--peak", "60%", "--verify", "5"], ["5"])
    assert done.returncode == 5, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "step 3: 0.0.bias differs"
    assert any(line.startswith("step 3: optimizer 0, parameter 1") for line in lines)


def test_verify_where_losses_differ_names_the_seed(run):
    done = run(scripts.STATE_IS_MOST.replace("manual_seed(0)", "seed()"),
               ["--peak", "90%", "--verify", "1"])
    assert done.returncode == 5
    assert done.stdout.splitlines()[-1] == (
        "Next: seed the script, if it is not: two plain runs would differ too")


def test_verify_of_a_budget_that_needs_nothing(run):
    done = run(scripts.STATE_IS_MOST, ["--peak", "1GiB", "--verify", "3"])
    assert done.returncode == 0
    assert done.stdout.strip().endswith("Nothing had to move: a step fits into the budget. Next: a "
                                        "smaller --peak")
    assert re.search(r"a step takes [\d.]+ MiB, the budget of 1.0 GiB needs nothing", done.stderr)


def test_advice_names_options_in_a_shell(run):
    done = run(scripts.TRAINS, ["--peak", "700KiB", "--allow", "swap"], ["4"])
    assert done.returncode == 4
    assert "Next: " in done.stderr and "fit(" not in done.stderr and "allow=" not in done.stderr


def test_verify_of_too_few_steps_says_so(run):
    done = run(scripts.TRAINS, ["--peak", "60%", "--verify", "2"], ["5"])
    assert done.returncode == 0
    assert "No step ran by a plan. Next: verify more steps" in done.stdout


def test_verify_of_a_script_that_fails(run):
    done = run(scripts.RAISES, ["--peak", "60%", "--verify", "6"], ["6"])
    assert done.returncode == 1
    assert "the run plain ended with 1: nothing to compare" in done.stderr
