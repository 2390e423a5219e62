"""Whether the native module is there, and for which torch, is said and does no harm."""

import os
import subprocess
import sys

import pytest
import torch

import tidepool_torch as tidepool
from tidepool_torch.running import native


def test_a_module_for_another_torch_is_not_loaded(tmp_path):
    said = doctor_with(tmp_path, 'TORCH = "1.0.0"\n')
    assert f"built for torch 1.0.0, not for {torch.__version__}: not loaded" in said


def test_a_module_that_does_not_load_is_said(tmp_path):
    said = doctor_with(tmp_path, f"TORCH = {str(torch.__version__)!r}\n")
    assert "does not load" in said


def test_without_the_module_doctor_says_what_to_do(tmp_path):
    said = doctor_with(tmp_path, None)
    assert "not installed. Next: only speed is lost" in said
    # By its folder: a name is looked up in a registry, where anybody may have taken it.
    command = said.partition("pip install ")[2].split()
    assert "--no-index" in command and os.path.isfile(os.path.join(command[-1], "setup.py"))
    assert "tidepool-torch-native" not in said


def test_without_the_source_the_folder_is_named_not_the_module(monkeypatch):
    monkeypatch.setattr(native, "_FOLDER", os.devnull)
    assert native.how_to_build().endswith("./python/native, in Tidepool's source")


SETUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "native", "setup.py")


def test_setuptools_that_is_too_old_is_said_in_one_line(tmp_path):
    (tmp_path / "setuptools.py").write_text('__version__ = "59.6.0"\nsetup = None\n')
    done = subprocess.run([sys.executable, SETUP, "--name"], capture_output=True, text=True,
                          check=False, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1
    assert done.stderr == ("the native module is built by setuptools 61 or newer, and this is 59.6.0. "
                           "Next: pip install --upgrade setuptools\n")


@pytest.mark.skipif(native.find()[0] is None, reason=f"tidepool-torch-native: {native.find()[1]}")
def test_doctor_says_for_which_torch_it_was_built():
    assert f"ok      native module: built for torch {torch.__version__}" in tidepool.doctor()


def doctor_with(folder, built_for):
    """What doctor() says of the native module where that one lies first on the path."""
    package = folder / "tidepool_torch_native"
    package.mkdir()
    (package / "__init__.py").write_text("")
    if built_for is not None:
        (package / "built_for.py").write_text(built_for)
        (package / "_native.py").write_text('raise ImportError("undefined symbol")\n')
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run([sys.executable, "-m", "tidepool_torch", "doctor"], env=environment,
                          capture_output=True, text=True, check=False)
    return next(line for line in done.stdout.splitlines() if "native module" in line)
