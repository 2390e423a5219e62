"""Bytes in words."""

import pytest

from tidepool_torch.base.errors import bytes_of, needed_in_words


@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 52_428, 52_429, (1 << 20) - 1, 1 << 20,
                                   44_249_907, 44_249_908, (5 << 30) // 2, 12_345_678_901])
def test_the_budget_that_is_said_is_enough(count):
    said = needed_in_words(count)
    assert count <= bytes_of(said.replace(" bytes", ""), "peak")


def test_needed_bytes_are_rounded_up():
    assert needed_in_words((42 << 20) + 1) == "42.1 MiB"
    assert needed_in_words(42 << 20) == "42.0 MiB"
