"""Opens what others have recorded, and says what is wrong with it where it cannot be read."""

import gzip
import io
import json
import os
import pickle
import zlib

from ..base.errors import TidepoolError


class BadTrace(TidepoolError):
    """A file that is no trace, or has not what is needed. The message names file and field."""


class NoSuchStep(BadTrace):
    """The trace does not have the step that was asked for."""


class _NoGlobals(pickle.Unpickler):
    """Reads numbers, text and containers alone: a pickle that names code would run it."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(
            f"it holds {module}.{name}, and a snapshot holds numbers, text, lists and dicts alone")


def read(path):
    """What a file holds: a list of dicts where it is JSON line by line, else one value."""
    data = _unpacked(path)
    if not data:
        raise BadTrace(f"{path}: the file is empty. Next: record it anew")
    if data[:1] == b"\x80":
        return _unpickled(path, data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadTrace(f"{path}: neither a pickle nor JSON (byte {error.start} is not UTF-8). Next: "
                       "give a trace as it was written, or that packed with gzip") from None
    if text.lstrip()[:1] == "{" and '"INSTRUCTION"' in text.split("\n", 1)[0]:
        return [_parsed(path, line, number)
                for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    return _parsed(path, text)


def _unpacked(path):
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise BadTrace(f"{path}: {error.strerror}. Next: give a file that can be read") from None
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadTrace(f"{path}: the gzip data is cut off or damaged ({error}). Next: copy or "
                       "record the file again") from None


def _unpickled(path, data):
    try:
        return _NoGlobals(io.BytesIO(data)).load()
    except Exception as error:  # pylint: disable=broad-except
        # Damaged pickles raise whatever the bytes that are left happen to ask for.
        raise BadTrace(f"{path}: the pickle cannot be read: {error}. Next: give what "
                       "torch.cuda.memory._dump_snapshot() has written") from None


def _parsed(path, text, line=None):
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        at = f"line {line}: " if line else ""
        raise BadTrace(f"{path}: {at}not JSON ({error}). Next: give the whole file as it was "
                       "written") from None


def stem(path):
    """The file's name without what says how it is written."""
    name = os.path.basename(path)
    for end in (".gz", ".json", ".pt.trace", ".trace", ".pickle", ".pkl", ".log"):
        if name.endswith(end) and len(name) > len(end):
            name = name[:-len(end)]
    return name


class Fields:
    """A value of a trace that knows where it stands, for messages."""

    def __init__(self, path, value, where=""):
        self.path = path
        self.value = value
        self.where = where

    def get(self, key, kind, what):
        """The field `key`, which has to be a `kind`; `what` says in words what belongs there."""
        place = f"{self.where}.{key}" if self.where else key
        value = self.value.get(key) if isinstance(self.value, dict) else None
        right = isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)
        if not right:
            found = "is missing" if value is None else f"is {value!r:.40}"
            raise BadTrace(f"{self.path}: field '{place}' {found}; {what} belongs there")
        return value

    def each(self, key, what):
        """Fields of each entry of a list."""
        place = f"{self.where}.{key}" if self.where else key
        for i, value in enumerate(self.get(key, list, what)):
            yield Fields(self.path, value, f"{place}[{i}]")


NUMBER = (int, float)
