"""Runs the copies of a plan beside the ops, on streams of the device: what CopyThreads does, for a device
that does what it is asked in order. The host waits for nothing.

A copy is asked for when the walk comes to it. That it waits for ops and other copies is said to its
stream, that an op waits for copies to the stream of the ops. Blocks belong to the stream of the ops, to
whose next op the allocator gives a freed one at once. So:

- A copy that fills a block waits for all that the stream of the ops was asked until then.
- A block that a copy reads or fills goes back when the stream of the ops has waited for that copy; until
  then it is in limbo. Whoever gets these addresses by the plan waits for that copy: bytes in use and
  in limbo are never more than the plan has.
"""


class CopyStreams:
    """`done[i]`: whether instruction i of this step was asked for; `missing[i]`: how many others it waits
    for. copy(i, stream) asks for a copy, and finish(i) says that it is done."""

    def __init__(self, schedule, streams, device, copy, finish):
        n = len(schedule.instructions)
        self._device = device
        self._copy = copy
        self._finish = finish
        self._instructions = schedule.instructions
        self._waits = schedule.copy_waits
        self._streams = {number: device.stream() for number in streams}
        self._is_waited_for = [False] * n
        for waits in schedule.copy_waits:
            for w in waits:
                self._is_waited_for[w] = True
        self._events = [None] * n  # of this step
        self._free_events = []
        self._used_events = []
        self._uses = {}  # placement -> {copy stream: the last of its copies that reads or fills it}
        self._waited = {}  # copy stream -> the last of its copies that the ops have waited for
        self._last = {}  # copy stream -> the last of its copies
        self._limbo = []  # ({copy stream: copy}, block)
        self.error = None  # what fails is raised where the host waits
        self.done = [True] * n
        self.missing = [len(waits) for waits in schedule.copy_waits]
        self.stalled = 0.0  # seconds that the host waited

    def begin(self):
        self.done = [False] * len(self.done)
        self._free_events += self._used_events
        self._used_events = []
        self._events = [None] * len(self._events)
        self._uses.clear()
        self._waited = dict.fromkeys(self._streams, -1)
        self._last = dict.fromkeys(self._streams, -1)

    # ---- copies

    def start(self, i):
        """Copy i is the next one of its stream."""
        x = self._instructions[i]
        stream = self._streams[x.stream]
        self._copy_waits(i, stream)
        for p in (x.source, x.target):
            self._uses.setdefault(p, {})[x.stream] = i
        self._last[x.stream] = i
        self._copy(i, stream)
        self._record(i, stream)
        self._finish(i)

    def _copy_waits(self, i, stream):
        for w in self._waits[i]:
            if self._events[w] is not None:
                stream.wait_event(self._events[w])

    def fresh_for(self, size, stream):
        """A block that a copy on `stream` may fill; None: on the stream of the ops."""
        block = self._device.fresh(size)
        if stream is not None:
            self._fill_waits(stream)
        return block

    def _fill_waits(self, stream):
        event = self._event()
        event.record(self._device.current())
        stream.wait_event(event)

    def is_done(self, i):
        """To be called when instruction i was asked for."""
        self.done[i] = True
        if self._is_waited_for[i] and not self._instructions[i].is_copy:
            self._record(i, self._device.current())

    # ---- ops

    def wait(self, i):
        """The stream of the ops waits for the copies that instruction i needs."""
        for w in self._waits[i]:
            self._ops_wait(self._instructions[w].stream, w)
        self._let_go()

    def wait_for_all(self):
        """The same for all copies of the step."""
        for stream, last in self._last.items():
            self._ops_wait(stream, last)
        self._let_go()

    def _ops_wait(self, stream, copy):
        if self._waited[stream] < copy:
            self._device.current().wait_event(self._events[copy])
            self._waited[stream] = copy

    # ---- blocks

    def retire(self, p, block):
        """The block of a placement is not needed by what is asked for from now on."""
        uses = {s: i for s, i in self._uses.get(p, {}).items() if self._waited[s] < i}
        if uses:
            self._limbo.append((uses, block))

    def settle(self, p):
        """The same for a block that becomes PyTorch's, who frees it at any time."""
        for stream, copy in self._uses.get(p, {}).items():
            self._ops_wait(stream, copy)
        self._let_go()

    def _let_go(self):
        self._limbo = [(uses, block) for uses, block in self._limbo
                       if any(self._waited[s] < i for s, i in uses.items())]

    # ---- the end

    def stop(self):
        """All that was asked for is done. What failed in it is raised."""
        self._device.wait()
        self._waited = dict(self._last)
        self._limbo.clear()

    def close(self):
        """No copy uses the plan's host bytes any more."""
        self._device.wait()

    def _record(self, i, stream):
        event = self._events[i] = self._event()
        event.record(stream)

    def _event(self):
        event = self._free_events.pop() if self._free_events else self._device.event()
        self._used_events.append(event)
        return event
