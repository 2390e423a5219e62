"""What cannot be served inside of a step, found where it happens, and said so."""

import sys

from .errors import TidepoolError

_COMPILED = ("torch.compile: {what} runs eagerly, without a word, under the mode that fit() needs. "
             "Next: {next}")
COMPILED_MODEL = _COMPILED.format(what="a compiled model", next="fit() the model that is not compiled")
_COMPILED_FUNCTION = _COMPILED.format(what="a compiled function inside the step",
                                      next="call it as it is, not compiled")
DATA_PARALLEL = ("DataParallel: its replicas run in threads of their own, whose ops no budget sees. "
                 "Next: DistributedDataParallel, or the model inside it")


def look_for_compiled():
    """TidepoolError where the op that runs now was called by a compiled function."""
    if "torch._dynamo.eval_frame" not in sys.modules:
        return
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "compile_wrapper":
            raise TidepoolError(_COMPILED_FUNCTION)
        frame = frame.f_back


def of_another_thread():
    return TidepoolError(
        "the model is called in another thread than the one whose step this is: a budget sees none of "
        "its ops, and may move what it reads. Next: call it in the thread of `with budget.step()`")


def of_another_stream():
    return TidepoolError(
        "an op of the step runs on another stream than the one that was current when the step began: "
        "what a budget moves is ordered by that one. Next: `with stream:` around `with budget.step():`, "
        "or such work before or behind the step")


def of_a_second_step(is_of_same_budget, is_in_same_thread):
    if not is_in_same_thread:
        return TidepoolError(
            "a step runs in another thread: bytes are counted, and random numbers drawn, for the whole "
            "process. Next: one step behind the other (a lock around each), or a process for each "
            "training")
    if is_of_same_budget:
        return TidepoolError("a step is inside another step of the same budget. Next: one `with "
                             "budget.step():` around both")
    return TidepoolError(
        "a step is inside another step, of another budget: both would move the same tensors. Next: one "
        "step behind the other, or one fit() of both models (as a torch.nn.ModuleList) and both "
        "optimizers")


def explained(error):
    """What to raise instead of an error of PyTorch's that says nothing of its cause; None: itself."""
    if "access storage of Sparse" in str(error):
        return TidepoolError("a sparse tensor in the step has no storage that could move. Next: dense "
                             "tensors, and sparse=False for embeddings")
    return None
