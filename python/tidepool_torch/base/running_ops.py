"""Storages that ops of threads beside the step's run on (onlookers.py), by `_cdata`."""

import collections
import contextlib
import os
import threading

_changed = threading.Condition()
_running = collections.Counter()
_to_move = collections.Counter()


def _more(counter, identity):
    counter[identity] += 1


def _fewer(counter, identity):
    counter[identity] -= 1
    if not counter[identity]:
        del counter[identity]


@contextlib.contextmanager
def on(storages):
    """An op on them, for which their bytes stay. Waits until none of them moves."""
    identities = {s._cdata for s in storages}
    with _changed:
        _changed.wait_for(lambda: not any(c in _to_move for c in identities))
        for c in identities:
            _more(_running, c)
    try:
        yield
    finally:
        with _changed:
            for c in identities:
                _fewer(_running, c)
            if _to_move:
                _changed.notify_all()


def move_beside(move, storage, *arguments):
    """Calls move(storage, *arguments) when no op runs on the storage; none begins meanwhile."""
    with _changed:
        if storage._cdata in _running:
            _wait_for_ops_on(storage._cdata)
        move(storage, *arguments)


def _wait_for_ops_on(c):
    _more(_to_move, c)
    try:
        _changed.wait_for(lambda: c not in _running)
    finally:
        _fewer(_to_move, c)
        _changed.notify_all()


def _begin_in_child():
    """Threads of the parent are not in a child of fork(), nor do they let go of what they held."""
    global _changed  # pylint: disable=global-statement
    _changed = threading.Condition()
    _running.clear()
    _to_move.clear()


os.register_at_fork(after_in_child=_begin_in_child)
