"""What each reader hands back, and how it chooses a step."""

import dataclasses
import typing

from .files import NoSuchStep
from .writer import Writer


@dataclasses.dataclass
class Found:
    writer: Writer
    use: str
    step: object
    steps: list
    notes: list
    before: typing.Optional[int] = None  # bytes that are taken when the step begins
    after: typing.Optional[int] = None  # and when it ends


def chosen_step(path, field, steps, asked, default):
    """The step that was asked for, or the default one. `field` is where the file marks steps."""
    if asked is None:
        return default
    if asked in steps:
        return asked
    there = f"it has {', '.join(map(str, steps))}" if steps else "it marks none"
    raise NoSuchStep(f"{path}: there is no step {asked} in {field}; {there}. Next: one of these, or "
                     "no --step")
