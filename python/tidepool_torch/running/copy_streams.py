"""Runs the copies of a plan beside the ops, on streams of the device: what CopyThreads does, for a device
that does what it is asked in order. The host waits for nothing, and copies go on into the next step.

A copy is asked for when the walk comes to it. That it waits for ops and other copies is said to its
stream, that an op waits for copies to the stream of the ops. Blocks belong to the stream of the ops, to
whose next op the allocator gives a freed one at once. So:

- A copy that fills a block waits for all that the stream of the ops was asked until then.
- A block that a copy reads or fills goes back when the stream of the ops has waited for that copy; until
  then it is in limbo. An op that gets these addresses by the plan waits for that copy. A copy that does
  waits too, on its own stream: it takes the very block where that is as large, else the stream of the ops
  waits. So bytes in use and in limbo are never more than the plan has.
- What PyTorch has between steps is settled: the stream of the ops has waited for its copies.
"""


def _learn(known, other):
    for stream, copy in other.items():
        known[stream] = max(known[stream], copy)


class CopyStreams:
    """`done[i]`: whether instruction i of this step was asked for; `missing[i]`: how many others it waits
    for. copy(i, stream) asks for a copy, and finish(i) says that it is done. Copies are known by a count
    that goes on from step to step."""

    def __init__(self, schedule, streams, device, copy, finish):
        n = len(schedule.instructions)
        self._device = device
        self._placements = schedule.plan.placements
        self._copy = copy
        self._finish = finish
        self._instructions = schedule.instructions
        self._waits = schedule.copy_waits
        self._waits_for_last_step = schedule.waits_for_last_step
        self._streams = {number: device.stream() for number in streams}
        self._is_waited_for = [False] * n
        for waits in (*self._waits, *self._waits_for_last_step):
            for w in waits:
                self._is_waited_for[w] = True
        self._begun = 0  # count of the first instruction of this step
        self._events = [None] * n  # (event, what its stream knew then), of this step
        self._events_of_last_step = [None] * n
        self._free_events, self._used_events, self._used_in_last_step = [], [], []
        self._uses = {}  # placement -> {copy stream: the last of its copies that reads or fills it}
        # What a stream knows: of each copy stream the last copy that it has waited for, itself or
        # through others.
        self._waited = dict.fromkeys(streams, -1)  # of the stream of the ops
        self._knows = {stream: dict(self._waited) for stream in streams}
        self._last = dict.fromkeys(streams, -1)  # the last copy
        self._last_event = {}
        self._limbo = []  # ({copy stream: copy}, placement, block)
        self.error = None  # what fails is raised where the host waits
        self.done = [True] * n
        self.missing = [len(now) + len(before)
                        for now, before in zip(self._waits, self._waits_for_last_step)]
        self.stalled = 0.0  # seconds that the host waited

    def begin(self):
        n = len(self.done)
        self._begun += n
        self.done = [False] * n
        self._events_of_last_step, self._events = self._events, [None] * n
        self._free_events += self._used_in_last_step
        self._used_in_last_step, self._used_events = self._used_events, []
        self._uses.clear()

    # ---- copies

    def start(self, i):
        """Copy i is the next one of its stream."""
        x = self._instructions[i]
        stream = self._streams[x.stream]
        self._copy_waits(i, x.stream)
        self._copy(i, x.stream)
        self._last[x.stream] = self._knows[x.stream][x.stream] = self._begun + i
        for p in (x.source, x.target):
            self._uses.setdefault(p, {})[x.stream] = self._begun + i
        self._record(i, stream, self._knows[x.stream])
        self._last_event[x.stream] = self._events[i]
        self._finish(i)

    def _copy_waits(self, i, stream):
        for events, waits in ((self._events, self._waits[i]),
                              (self._events_of_last_step, self._waits_for_last_step[i])):
            for w in waits:
                if events[w] is not None:
                    self._stream_waits(stream, *events[w])

    def _stream_waits(self, stream, event, known):
        self._streams[stream].wait_event(event)
        _learn(self._knows[stream], known)

    def on(self, stream):
        """Enters a block whose copies that stream carries out; None: that of the ops."""
        return self._device.on(None if stream is None else self._streams[stream])

    def fresh_for(self, p, size, stream):
        """Returns bytes that a copy on `stream` may fill; None: on that of the ops."""
        below = [entry for entry in self._limbo if self._overlap(entry[1], p)]
        if stream is not None and len(below) == 1:
            uses, _, block = below[0]
            if block.nbytes() == size and all(self._knows[stream][s] >= i for s, i in uses.items()):
                self._limbo.remove(below[0])
                return block
        for uses, _, _ in below:
            self._ops_wait_for(uses)
        self._let_go()
        block = self._device.fresh(size)
        if stream is not None:
            self._fill_waits(stream)
        return block

    def _overlap(self, p, other):
        a, b = self._placements[p], self._placements[other]
        return a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes

    def _fill_waits(self, stream):
        event = self._event()
        event.record(self._device.current())
        self._stream_waits(stream, event, self._waited)

    def is_done(self, i):
        """To be called when instruction i was asked for."""
        self.done[i] = True
        if self._is_waited_for[i] and not self._instructions[i].is_copy:
            self._record(i, self._device.current(), self._waited)

    # ---- ops

    def wait(self, i):
        """The stream of the ops waits for the copies that instruction i needs."""
        for w in self._waits[i]:
            self._ops_wait(self._instructions[w].stream, self._begun + w)
        for w in self._waits_for_last_step[i]:
            if self._events_of_last_step[w] is not None:
                self._ops_wait(self._instructions[w].stream, self._begun - len(self.done) + w)
        self._let_go()

    def end(self, placements):
        """Settles `placements`, which are PyTorch's until the next step."""
        for p in placements:
            self.settle(p)

    def _ops_wait(self, stream, copy):
        if self._waited[stream] < copy:
            event, known = self._event_of(stream, copy)
            self._device.current().wait_event(event)
            _learn(self._waited, known)

    def _event_of(self, stream, copy):
        """Returns that of a copy; of one before the last step its stream's last, which lies behind it."""
        for events, begun in ((self._events, self._begun),
                              (self._events_of_last_step, self._begun - len(self.done))):
            if 0 <= copy - begun < len(events) and events[copy - begun] is not None:
                return events[copy - begun]
        return self._last_event[stream]

    # ---- blocks

    def retire(self, p, block):
        """The block of a placement is not needed by what is asked for from now on."""
        uses = {s: i for s, i in self._uses.get(p, {}).items() if self._waited[s] < i}
        if uses:
            self._limbo.append((uses, p, block))

    def settle(self, p):
        """The same for a block that becomes PyTorch's, who frees it at any time."""
        self._ops_wait_for(self._uses.get(p, {}))
        self._let_go()

    def _ops_wait_for(self, uses):
        for stream, copy in uses.items():
            self._ops_wait(stream, copy)

    def in_limbo(self):
        """Bytes of blocks that copies still use and nobody else does."""
        return sum(self._device.block_bytes(block.nbytes()) for _, _, block in self._limbo)

    def _let_go(self):
        if self._limbo:
            self._limbo = [entry for entry in self._limbo
                           if any(self._waited[s] < i for s, i in entry[0].items())]

    # ---- the end

    def stop(self):
        """Waits, on the host, for all that was asked for, and raises what failed in it."""
        self._device.wait()
        for known in (self._waited, *self._knows.values()):
            _learn(known, self._last)
        self._limbo.clear()
        # What comes next is another step, with none before it.
        self._events = [None] * len(self._events)

    def close(self):
        """Waits until no copy uses the plan's host bytes."""
        self._device.wait()

    def _record(self, i, stream, known):
        event = self._event()
        event.record(stream)
        self._events[i] = event, dict(known)

    def _event(self):
        event = self._free_events.pop() if self._free_events else self._device.event()
        self._used_events.append(event)
        return event
