#!/usr/bin/env bash
# Installs the wheel in a folder into a fresh virtual environment, imports it, asks its doctor and makes
# a plan, with each Python that is named. None of them needs torch; where one is to have it, TORCH=1
# installs it there (5 GB) and trains.
#
#   scripts/torch_wheel_test.sh FOLDER [PYTHON...]        for instance build/wheel python3.9 python3.13
set -euo pipefail

fail() {
  echo "torch_wheel_test.sh: $*" >&2
  exit 1
}

[[ $# -ge 1 ]] || fail "it takes FOLDER [PYTHON...]"
wheels=("$1"/tidepool_torch-*.whl)
shift
[[ ${#wheels[@]} -eq 1 && -f ${wheels[0]} ]] || fail "there is to be one wheel in the folder"
wheel=$(realpath "${wheels[0]}")
[[ $# -gt 0 ]] || set -- python3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH TIDEPOOL_LIBRARY TIDEPOOL_HOOK TIDEPOOL_PLANNER
cd "$work"

for python in "$@"; do
  "$python" -m venv "$work/venv" || fail "$python makes no virtual environment"
  "$work/venv/bin/pip" install --quiet --no-index "$wheel" || fail "pip does not install it for $python"
  [[ -z ${TORCH:-} ]] || "$work/venv/bin/pip" install --quiet torch numpy
  "$work/venv/bin/python" - << 'PYTHON'
import json, os, subprocess, sys
import tidepool_torch
from tidepool_torch.base import hook, library
from tidepool_torch.planning import planner
from tidepool_torch.user.diagnosis import _TRIAL, _TRIAL_BUDGET, _TRIAL_MACHINE

inside = os.path.dirname(tidepool_torch.__file__)
assert inside.startswith(sys.prefix), inside
assert library.library().path.startswith(inside), library.library().path
plan = planner.plan(_TRIAL, _TRIAL_MACHINE, _TRIAL_BUDGET,
                    options=planner.Options(evaluations=10, bound=True))
assert plan.info.swapped_tensors == 1, plan.info.swapped_tensors
assert plan.info.bound >= 0, plan.info.notes
assert hook.hook_path() is not None
script = os.path.join(sys.prefix, "bin", "tidepool-torch")
told = json.loads(subprocess.run([script, "doctor", "--json"], stdout=subprocess.PIPE).stdout)
by_name = {finding["what"]: finding for finding in told["findings"]}
assert by_name["libtidepool"]["ok"] and by_name["a plan"]["ok"] and by_name["lower bounds"]["ok"]
preloaded = subprocess.run(
    [sys.executable, "-c", "from tidepool_torch.base import memory; assert memory.hook_is_loaded()"],
    env=hook.with_hook(os.environ))
assert preloaded.returncode == 0, "the hook does not load"
try:
    tidepool_torch.fit
    without = "with torch"
except ImportError as error:
    without = str(error)
print(f"Python {sys.version.split()[0]}: {without}")
PYTHON
  "$work/venv/bin/tidepool-torch" doctor || [[ -z ${TORCH:-} ]]
  rm -rf "$work/venv"
done
