"""Ends a plan early: what PyTorch still holds gets a place that does not depend on the plan.

Bytes on the device become their storages' own again, bytes on the host go to regions of their own
(`Away`), and what only a rerun could make is made: the reruns and copies that lead to it are cut out
of the rest of the schedule and run in its order.
"""

from ..base import primitives
from .executor import as_a_kernel_call


def land(executor, away):
    """Returns (name, storage) of what is on the device then and may leave it."""
    executor.stop_copies()
    blocks = executor.blocks
    managed = [(blocks.name(t), blocks.reference.get(t))
               for t in sorted(blocks.mine)]
    lost = []
    for t in sorted(blocks.mine):
        storage = primitives.living(blocks.reference.get(t))
        if storage is None or t in blocks.landed:  # by an attempt that failed later on
            continue
        here = [p for p in blocks.newest[t] if p in blocks.block]
        there = [p for p in blocks.newest[t]
                 if not blocks.plan.placements[p].on_device]
        if not here and not there:
            lost.append(t)
        elif not here:
            _to_away(blocks, t, storage, there[0], away)
    slices = _Slice(executor, lost)
    _release(blocks, slices.placements, away)
    try:
        if lost:
            with as_a_kernel_call(executor.blocks.device):
                slices.run(away)
    finally:
        # Whatever a rerun did: all but the lost have their bytes, and the plan is over.
        blocks.forget()
        executor.kept_calls.clear()
    living = [(name, primitives.living(reference)) for name, reference in managed]
    return [(name, storage) for name, storage in living if storage is not None]


def _to_away(blocks, t, storage, placement, away):
    if blocks.points_at[t] is not None:
        blocks.say_away(t, storage)
        blocks.points_at[t] = None
    away.put_copy(storage, blocks.region, blocks.plan.placements[placement].offset,
                  blocks.name(t))
    blocks.landed.add(t)


def _release(blocks, needed, away):
    """Blocks with newest values go to their storages; those that reruns need stay for now, and to
    make room for what they make everything else leaves."""
    for t in sorted(blocks.mine):
        storage = primitives.living(blocks.reference.get(t))
        if storage is None or storage in away:
            continue
        here = [p for p in blocks.newest[t] if p in blocks.block]
        if not here:
            continue
        p = here[0]
        was_away = blocks.points_at[t] is None
        if p in needed:
            if blocks.points_at[t] != p:
                blocks.point(t, p, storage)
            away.put_or_leave(storage, blocks.name(t))
        else:
            primitives.set_bytes(storage, blocks.block.pop(p), was_away)
            if needed:
                away.put_or_leave(storage, blocks.name(t))
        blocks.points_at[t] = None
    for p in [p for p in blocks.block if p not in needed]:
        del blocks.block[p]


class _Slice:
    """The instructions that are left of the schedule and lead to the values of `lost` tensors."""

    def __init__(self, executor, lost):
        self._executor = executor
        self._wanted = {}  # instruction -> (tensor, placement) whose value is there before it
        self._steps = []
        self.placements = set()
        if lost:
            self._find(set(lost))

    def _find(self, lost):
        instructions = self._executor.schedule.instructions
        done = self._executor.copies.done
        recorded = self._executor.program.recorded
        tensor_at = self._executor.schedule.tensor_at
        for i, x in enumerate(instructions):
            if x.is_copy or x.again or done[i] or recorded[x.op] < 0:
                continue
            for p, _ in x.operands:
                if tensor_at(p) in lost:
                    lost.discard(tensor_at(p))
                    self._wanted.setdefault(i, []).append((tensor_at(p), p))
        need = set()
        for i in range(len(instructions) - 1, -1, -1):
            x = instructions[i]
            if i in self._wanted:
                need |= {p for _, p in self._wanted[i]}
                self.placements |= need
            if done[i] or not self._leads_to(x, need):
                continue
            self._steps.append(i)
            if x.is_copy:
                need.discard(x.target)
                need.add(x.source)
            else:
                need -= {p for p, mode in x.operands if mode == 1}
                need |= {p for p, mode in x.operands if mode != 1}
            self.placements |= need
            self.placements |= set([x.source, x.target] if x.is_copy
                                   else [p for p, _ in x.operands])
        self._steps.reverse()

    @staticmethod
    def _leads_to(x, need):
        if x.is_copy:
            return x.target in need
        return x.again and any(mode != 0 and p in need for p, mode in x.operands)

    def run(self, away):
        executor = self._executor
        last_use = {}
        for i in self._steps:
            x = executor.schedule.instructions[i]
            for p in ([x.source, x.target] if x.is_copy else [p for p, _ in x.operands]):
                last_use[p] = i
        steps = sorted(set(self._steps) | set(self._wanted))
        for i in steps:
            for t, p in self._wanted.get(i, ()):
                self._hand_over(t, p, away)
            if i in self._steps:
                x = executor.schedule.instructions[i]
                if x.is_copy:
                    executor.copy(i)
                else:
                    executor.rerun(i)
            blocks = executor.blocks.block
            for p in [p for p in blocks
                      if last_use.get(p, -1) <= i and not self._wanted_later(p, i)]:
                del blocks[p]

    def _wanted_later(self, placement, i):
        return any(j > i and placement == p for j, wanted in self._wanted.items()
                   for _, p in wanted)

    def _hand_over(self, t, p, away):
        blocks = self._executor.blocks
        storage = primitives.living(blocks.reference.get(t))
        if storage is None:
            return
        primitives.set_bytes(storage, primitives.alias(blocks.block[p]), True)
        away.put_or_leave(storage, blocks.name(t))
