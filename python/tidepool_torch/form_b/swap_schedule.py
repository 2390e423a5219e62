"""A plan of copies only, as it is walked where storages are resized (form B)."""

from ..running.schedule import StepSchedule


class SwapSchedule(StepSchedule):
    """
    inputs[k]     for each tensor among the arguments of call k: the managed tensor that it is, or None
    ending_at[i]  placements whose bytes are no longer needed when instruction i is over
    """

    def __init__(self, program, plan):
        super().__init__(program, plan)
        tensor_of = {n: t for n, t in program.tensor_of.items() if t in self.managed}
        self.inputs = [[tensor_of.get(number) for number in inputs]
                       for _, _, inputs, _ in program.recording.dispatched]
        last = {}
        for i, ends in enumerate(self.ends):
            last.update(dict.fromkeys(ends, i))
        self.ending_at = [[] for _ in self.instructions]
        for ending, i in last.items():
            self.ending_at[i].append(self.endings[ending][0])
