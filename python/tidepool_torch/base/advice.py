"""What a budget says of a training that takes more than it has to, and of one that cannot be."""

from .compat import hooks_on_saved_tensors
from .errors import in_words

_MOST_NAMED = 4
_WORTH_A_WORD = 100  # parts of the peak

# Checkpointing saves nothing elsewhere: it computes again.
_HOOKS_OF_CHECKPOINTS = "torch.utils.checkpoint"


def of_optimizers(optimizers):
    """Optimizers whose ops go over all of their lists, where one parameter after the other would do;
    None where there is none."""
    names = {type(o).__name__ for o in optimizers
             if any(group.get("foreach") for group in o.param_groups)}
    if not names:
        return None
    return (f"{' and '.join(sorted(names))} has foreach=True: each of its ops goes over all "
            "parameters, gradients and states, so that what is away moves for each of them. Next: "
            "foreach=False, or fused=True")


def of_gradients(recording):
    """Gradients of the last step that are there while the next one runs; None where that is little."""
    held = [s for s in recording.storages
            if s.of_last_step and (s.freed is None or s.freed > 0)]
    size = sum(s.bytes for s in held)
    if size * _WORTH_A_WORD < recording.peak():
        return None
    text = (f"gradients of the last step occupy {in_words(size)} during forward; call "
            "optimizer.zero_grad(set_to_none=True) first")
    if any(s.freed is None and _is_zeroed(recording, s) for s in held):
        text = f"zero_grad(set_to_none=False) makes gradients persistent: {text}"
    return text


def _is_zeroed(recording, storage):
    return any("zero_" in recording.ops[k].name for k, _ in storage.accesses)


def of_hooks():
    """Somebody else's hooks on what autograd saves, active now; None where there are none."""
    active = hooks_on_saved_tensors()
    if active is None or active[0].__module__ == _HOOKS_OF_CHECKPOINTS:
        return None
    name = getattr(active[0], "__qualname__", type(active[0]).__name__).split(".")[0]
    return f"{name} offloads on its own; its copies count as host memory of the process"


def needs_of(program, op, floor):
    """The op that sets the floor, and what it needs, the largest first: two texts. Op -1 is none."""
    if op < 0:
        return "the step", "what no op may move"
    entry = program.json["ops"][op]
    tensors = program.json["tensors"]
    used = sorted((tensors[a["tensor"]] for a in entry["accesses"]), key=lambda t: -t["bytes"])
    parts = [(t["name"], t["bytes"]) for t in used[:_MOST_NAMED]]
    if len(used) > _MOST_NAMED:
        parts.append((f"{len(used) - _MOST_NAMED} more",
                      sum(t["bytes"] for t in used[_MOST_NAMED:])))
    workspace = max((a["workspace"] for a in entry["algorithms"]), default=0)
    held = floor - workspace - sum(t["bytes"] for t in used)
    parts += [(what, size) for what, size in (("workspace", workspace),
                                              ("held meanwhile", held)) if size > 0]
    return _op_in_words(entry["name"]), ", ".join(f"{n} {in_words(size)}" for n, size in parts)


def _op_in_words(name):
    number, _, rest = name.partition(".")
    if number.isdigit():
        return f"op {number} {rest}"
    return {"step_begins": "the model at the begin of a step",
            "step_ends": "the model at the end of a step"}.get(name, name)


def next_of(program, op):
    """What somebody may do whose budget is too small."""
    name = program.json["ops"][op]["name"] if op >= 0 else ""
    able = ["a larger budget", "a smaller batch with gradient accumulation"]
    if name in ("step_begins", "step_ends"):
        able = ["a larger budget", "fit(home=False)"]
    elif "._foreach_" in name:
        able.append("an optimizer with foreach=False")
    return " or ".join(", ".join(able).rsplit(", ", 1))
