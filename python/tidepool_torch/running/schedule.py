"""A plan as the executor walks it: derived once, the same in every step."""

import bisect
import collections
import itertools

from ..base import calls
from ..base.list_ops import lists_of
from ..recording.recording import UPDATE

_READS = 0  # a mode in the plan's tables

# So many calls that mean nothing to the plan may be missing at one place.
_AHEAD = 32

# In place of an Action: an op on nothing that the plan moves.
LEFT_ALONE = object()

# In place of a call that the executor has to look at.
NOT_PASSING = (None, None, False, -1, None)


def passing(func, action, made=None):
    if lists_of(func):
        return NOT_PASSING  # the call that comes is over all of the lists, this one over some
    if made is not None and any(r.alias_info is not None for r in func._schema.returns):
        return NOT_PASSING  # which of its results are new is known with its arguments
    run = getattr(func, "_op", func)
    if action is None:
        return func, run, False, -1, made
    if any("Tensor" in str(a.type) and (a.kwarg_only or "List" in str(a.type))
           for a in func._schema.arguments):
        return NOT_PASSING  # they are among others than its arguments
    written = calls.writes(func)
    if action is LEFT_ALONE and len(written) <= 1:
        return func, run, True, written[0][0] if written else -1, made
    return NOT_PASSING


class Action:
    """What one call of PyTorch's asks of the executor. `uses`: (position among the call's tensors,
    tensor, placement); `births`: for each new storage of the result (tensor, placement) or None;
    `sizes` their bytes; `updates`: (tensor, placement) that it changes; `touched` all tensors;
    `others`: positions where nothing that the plan moves belongs; `writes`: whether the op does;
    `ends_late`: whether behind it something is over for good."""

    __slots__ = ("instruction", "op", "index", "tensors", "uses", "births", "sizes", "updates",
                 "touched", "others", "writes", "kept", "ends_late")

    def __init__(self, instruction, index, op):
        self.instruction = instruction
        self.index = index
        self.op = op
        self.tensors = len(op.inputs)
        self.uses = []
        self.births = []
        self.sizes = []
        self.updates = []
        self.touched = ()
        self.others = ()
        self.kept = False
        self.writes = bool(calls.writes(op.func))
        self.ends_late = False


class StepSchedule:
    """
    managed      tensors whose storages point at blocks of the runtime: those with several places or
                 a copy, and operands of reruns; all others stay PyTorch's
    calls        (op function, Action, LEFT_ALONE or None) for each call of the step; None: it makes
                 views at most
    made         for each of these the bytes of its new results, where no Action compares them
    passing      for each of these (op function, what runs it, whether none of its arguments may be
                 one of the plan's tensors, the argument that it writes or -1, `made`) where it may
                 run at once, else NOT_PASSING
    highest      the call at which the plan has most on the device, and `highest_makes` what it makes
    ends[i]      placements of which instruction i is one of the last uses, as indices of `endings`
    endings      (placement, its uses): when all have been, its bytes are no longer needed
    copy_waits   instructions that one waits for which another thread runs
    waits_for_last_step   those of the step before that one waits for, on a device with streams: there
                 copies go on into the next step
    signals[i]   whether another thread wants to know when instruction i is done
    lets_go      positions of ops before which PyTorch lets go of what a call behind which it does so
                 has ended (Action.ends_late)
    python_looks_at   positions of calls that may not pass unseen, whatever they are on
    silent[i]    whether instruction i is a call of PyTorch's that asks nothing
    newest_after[i]  (tensor, placement) of which rerun i makes the value that PyTorch has of it
    """

    def __init__(self, program, plan):
        self.program = program
        self.plan = plan
        self.instructions = plan.instructions
        self._find_managed()
        self._find_endings()
        self._find_waits()
        self._find_calls()
        self._find_newest()
        self.made = [self._made_at(k) for k in range(len(self.calls))]
        self.highest, self.highest_makes = self._find_highest()
        self.passing = [passing(*call, made) for call, made in zip(self.calls, self.made)]
        self.lets_go = set(self._find_where_late_ends())
        self.python_looks_at = self.lets_go | {self.highest} - {-1}
        for position in self.python_looks_at:
            self.passing[position] = NOT_PASSING

    def op_at(self, position):
        """The recorded op that comes next at a call; the number of ops at the end."""
        for _, index, _, _ in self.program.recording.dispatched[position:]:
            if index >= 0:
                return index
        return len(self.program.recording.ops)

    def is_before_update(self, position):
        """Whether all of a step but what the optimizer does lies before a call."""
        update = self.program.recording.update
        return update is not None and self.op_at(position) == update

    def next_use(self, tensor, i):
        """The recorded op that uses a tensor next, from instruction i on or in the next step; None
        where none does."""
        uses = self._uses.get(tensor)
        if not uses:
            return None
        at = bisect.bisect_left(uses, (i, -1))
        return uses[at if at < len(uses) else 0][1]

    def tensor_at(self, placement):
        return self.plan.placements[placement].tensor

    def call_at(self, position):
        """The function is None at the end."""
        return self.calls[position] if position < len(self.calls) else (None, None)

    def where_it_is_next(self, func, position):
        """Where that call comes at or behind `position` (None: the end), with none between that
        means anything, or None."""
        for place in range(position, min(position + _AHEAD, len(self.calls) + 1)):
            expected, action = self.call_at(place)
            if expected is func:
                return place
            if expected is None or isinstance(action, Action) or calls.writes(expected):
                return None
        return None

    def _find_managed(self):
        places = collections.defaultdict(set)
        managed = set()
        for t, p in self.plan.boundary.items():
            places[t].add(p)
            if not self.plan.placements[p].on_device:
                managed.add(t)
        for x in self.instructions:
            for p in self._placements(x):
                t = self.tensor_at(p)
                places[t].add(p)
                if x.is_copy or x.again:
                    managed.add(t)
        managed |= {t for t, ps in places.items() if len(ps) > 1}
        self.managed = {t for t in managed if not self._is_pinned(t)}

    def _is_pinned(self, t):
        storage = self.program.tensors[t]
        return storage.pinned or storage.from_before

    @staticmethod
    def _placements(x):
        return (x.source, x.target) if x.is_copy else [p for p, _ in x.operands]

    def _find_endings(self):
        uses = collections.defaultdict(list)
        for i, x in enumerate(self.instructions):
            for p in self._placements(x):
                uses[p].append(i)
        self.endings = []
        self.ends = [[] for _ in self.instructions]
        for p, first, last, goes_on in self.plan.lives:
            if self.tensor_at(p) not in self.managed or (goes_on and last >= first):
                continue
            # One that came from the step before ends where it is last used in this one.
            begin = 0 if goes_on else first
            members = [i for i in uses[p] if begin <= i <= last]
            if not goes_on and (not members or members[-1] < last):
                members.append(last)  # taken until then, as the recording saw PyTorch hold it
            if not members:
                continue
            for i in members:
                self.ends[i].append(len(self.endings))
            self.endings.append((p, len(members)))

    def _find_waits(self):
        self.signals = [x.is_copy for x in self.instructions]
        self.copy_waits = [self._waits_of(x, 0) for x in self.instructions]
        # The host has waited for all of a step when it ends.
        of_before = self.program.device.has_streams
        self.waits_for_last_step = [self._waits_of(x, 1) if of_before else () for x in self.instructions]

    def _waits_of(self, x, steps_ago):
        waits = [index for _, index, iteration in x.waits if iteration == -steps_ago]
        if x.is_copy:
            for w in waits:
                self.signals[w] = True
            return tuple(waits)
        return tuple(w for w in waits if self.instructions[w].is_copy)

    def _find_calls(self):
        """By recorded op: the instruction that PyTorch's own call is, and whether it runs again."""
        own, self.reruns_of = {}, collections.Counter()
        self._own = own  # recorded op -> instruction
        for i, x in enumerate(self.instructions):
            index = -1 if x.is_copy else self.program.recorded[x.op]
            if index < 0:
                continue
            if x.again:
                self.reruns_of[index] += 1
            else:
                own[index] = i
        self._uses = collections.defaultdict(list)
        for index, i in sorted(own.items(), key=lambda item: item[1]):
            for t in {self.tensor_at(p) for p, _ in self.instructions[i].operands}:
                self._uses[t].append((i, index))
        self.accesses_left = collections.Counter()
        self.silent = [False] * len(self.instructions)
        self.calls = []
        for func, index, inputs, made in self.program.recording.dispatched:
            action = None
            if index in own:
                action = self._action(own[index], index, inputs, made)
                action.kept = index in self.reruns_of
                for t in action.touched:
                    self.accesses_left[t] += 1
                if not (action.uses or action.births or action.kept or action.updates
                        or action.op.shapes
                        or self._does_something(own[index])):
                    self.silent[action.instruction] = True
                    action = None
            if action is not None:
                used = {place for place, _, _ in action.uses}
                action.others = tuple(k for k in range(len(inputs)) if k not in used)
            elif index >= 0:
                action = LEFT_ALONE
            self.calls.append((func, action))
        self._find_late()

    def _find_where_late_ends(self):
        ended = False
        for position, (_, action) in enumerate(self.calls):
            if ended and self.program.recording.dispatched[position][1] >= 0:
                yield position
                ended = False
            if isinstance(action, Action):
                ended = action.ends_late

    def _made_at(self, position):
        storages = self.program.recording.storages
        made = [n for n in self.program.recording.dispatched[position][3] if not storages[n].elsewhere]
        action = self.calls[position][1]
        if not made or (isinstance(action, Action) and action.births):
            return None
        return self._bytes_of(made)

    def _bytes_of(self, numbers):
        return sum(self.program.recording.storages[n].bytes for n in numbers)

    def _find_highest(self):
        """(position, bytes that the call takes more) of those that the plan acts at, (-1, 0) where
        there are none."""
        load = self._load()
        best = (-1, 0)
        most = -1
        for position, (_, index, _, made) in enumerate(self.program.recording.dispatched):
            if not isinstance(self.calls[position][1], Action):
                continue
            workspace = self.program.recording.ops[index].workspace
            if load[self._own[index]] + workspace > most:
                most = load[self._own[index]] + workspace
                best = position, self._bytes_of(made) + workspace
        return best

    def _load(self):
        """Bytes of placements on the device at each instruction."""
        count = len(self.instructions)
        change = [0] * (count + 1)
        for p, first, last, goes_on in self.plan.lives:
            placement = self.plan.placements[p]
            if not placement.on_device:
                continue
            spans = [(first, last)]
            if goes_on:
                spans = [(0, count - 1)] if last >= first else [(0, last), (first, count - 1)]
            for begin, end in spans:
                change[begin] += placement.bytes
                change[end + 1] -= placement.bytes
        return list(itertools.accumulate(change[:count]))

    def _find_late(self):
        """What PyTorch holds goes behind the call: no copy may begin before that takes its room."""
        of_pytorch = {last for p, first, last, goes_on in self.plan.lives
                      if not goes_on and self.plan.placements[p].on_device
                      and self.tensor_at(p) not in self.managed}
        left = collections.Counter(self.accesses_left)
        for _, action in self.calls:
            if not isinstance(action, Action):
                continue
            for t in action.touched:
                left[t] -= 1
            ended = [self.tensor_at(self.endings[e][0]) for e in self.ends[action.instruction]]
            i = action.instruction
            action.ends_late = ((i in of_pytorch and self.signals[i]) or
                                any(not left[t] and t not in self.plan.boundary for t in ended))

    def _find_newest(self):
        changed_by = {}
        self.newest_after = [()] * len(self.instructions)
        for i, x in enumerate(self.instructions):
            if x.is_copy:
                continue
            changes = [(self.tensor_at(p), p) for p, mode in x.operands if mode != _READS]
            if x.again:
                self.newest_after[i] = tuple((t, p) for t, p in changes
                                             if changed_by.get(t) == x.op and t in self.managed)
            else:
                changed_by.update((t, x.op) for t, _ in changes)

    def _does_something(self, i):
        """Whether the walk has to stop at an instruction that itself changes nothing of ours."""
        return bool(self.ends[i] or self.copy_waits[i] or self.waits_for_last_step[i]
                    or self.signals[i]
                    or (i > 0 and not self._is_own_call(i - 1)))

    def _is_own_call(self, i):
        x = self.instructions[i]
        return not x.is_copy and not x.again and self.program.recorded[x.op] >= 0

    def _action(self, i, index, inputs, made):
        action = Action(i, index, self.program.recording.ops[index])
        place = {self.tensor_at(p): p for p, _ in self.instructions[i].operands}
        tensor_of = self.program.tensor_of
        seen = set()
        for position, number in enumerate(inputs):
            t = tensor_of.get(number)
            if t in self.managed and t not in seen:
                seen.add(t)
                action.uses.append((position, t, place[t]))
        for number in made:
            t = tensor_of.get(number)
            action.births.append((t, place[t]) if t in self.managed else None)
            action.sizes.append(self.program.recording.storages[number].bytes)
        if not any(action.births):
            action.births = []
        for number, mode in action.op.modes.items():
            t = tensor_of.get(number)
            if mode == UPDATE and t in self.managed:
                action.updates.append((t, place[t]))
        action.touched = tuple(seen | {b[0] for b in action.births if b})
        return action
