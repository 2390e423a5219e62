// Watches the calls of a step that runs a plan, and lets those that the plan leaves alone go on to
// their kernels without Python.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tidepool_torch {

/// What the plan expects of one call.
struct Call {
  enum class Kind : std::uint8_t {
    kPython,  ///< the executor does something for it
    kPasses,  ///< the plan leaves it alone, on whatever tensor: a view
    kLooks,   ///< the same, where none of its tensors is over a storage that the plan moves, and it
              ///< writes none that is to be read again
  };
  Kind kind = Kind::kPython;
  std::optional<c10::OperatorHandle> op;  ///< none in a call that is Python's
  std::vector<std::size_t> written;       ///< arguments that it writes, by position
  std::optional<std::size_t> made;        ///< recorded bytes of its new results, if it makes any
};

/// The calls of one plan's step, and how far the step is.
struct Watched {
  std::vector<Call> calls;
  std::size_t position = 0;  ///< of the next call
  std::size_t least = 0;     ///< smaller results are not looked at
  std::int64_t spare = 0;    ///< bytes that results may still have above the recorded ones: below 0
                             ///< no call passes
  std::int64_t passed = 0;   ///< calls that passed without Python, of all steps
};

// Note [Before Python]
// A TorchDispatchMode sees a call in three steps: PyTorch's kernel at the dispatch key Python asks
// its interpreter's table of functions to dispatch; that turns the arguments into Python objects
// and calls the mode, without the mode on the stack; and the mode calls the op, which turns them
// back. The observer stands at the first of them, in the table. A call that the plan leaves alone
// is called there, without the mode on the stack too: what runs and what it sees of the
// dispatcher's state is the same, without the objects. All else goes to Python as if there were no
// observer. Kernels of our own at the key would have to repeat what PyTorch's does there; a key of
// our own has no place between autograd and Python; and observers of RecordFunction are called
// above autograd, where one call is not yet what the mode sees.

/// Puts the observer before Python, once for the process. Not undone: nothing is watched without a
/// step.
void install_observer();

/// A step begins, of which there is one at a time in the process. `mode` is its mode; `ours` is the set of the addresses of the
/// storages that the plan moves, `read_later` of those that a call that runs again is to read. A
/// call that passes counts `watched.position` on; behind others the caller sets it. The caller
/// holds the interpreter's lock, and all four until stop_observer(). A step that begins inside of
/// another takes the observer from it for good.
void start_observer(PyObject* mode, PyObject* ours, PyObject* read_later, Watched& watched);

/// The step is over, or goes on without its plan.
void stop_observer(const Watched& watched);

}  // namespace tidepool_torch
