#include "observer.h"

#include <ATen/core/ivalue.h>
#include <c10/core/impl/PyInterpreter.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <pybind11/pybind11.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/utils/torch_dispatch_mode.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "delegate.h"

namespace tidepool_torch {
namespace {

namespace py = pybind11;
using c10::IValue;
using c10::OperatorHandle;
using c10::impl::TorchDispatchModeTLS;
using torch::jit::Stack;

/// Calls `look` for each tensor of an argument until it says true.
template <typename Look>
bool any_tensor(const IValue& value, const Look& look) {
  if (value.isTensor()) return look(value.unsafeToTensorImpl());
  if (!value.isList()) return false;
  for (const IValue& element : value.toListRef()) {
    if (element.isTensor()) {
      if (look(element.unsafeToTensorImpl())) return true;
    } else if (!element.isNone()) {
      return false;  // a list of something else
    }
  }
  return false;
}

bool is_pythons(const c10::TensorImpl* tensor) {
  return tensor->key_set().has(c10::DispatchKey::Python);
}

class Observer {
 public:
  void start(PyObject* mode, PyObject* ours, PyObject* read_later, Watched& watched) {
    ours_ = ours;
    read_later_ = read_later;
    watched_ = &watched;
    mode_ = mode;
  }

  void stop(const Watched& watched) {
    if (watched_ == &watched) mode_ = nullptr;
  }

  /// Whether the top mode of this thread is that of the step: of the thread that runs it and, in a
  /// backward pass, of autograd's of the device, to which modes go along. With another mode below it,
  /// that one has to see the call too.
  bool is_watching() const {
    PyObject* mode = mode_;
    return mode != nullptr && TorchDispatchModeTLS::stack_len() == 1 &&
           TorchDispatchModeTLS::get_stack_at(0)->ptr(getPyInterpreter()) == mode;
  }

  bool passes(const OperatorHandle& op, const Stack& stack) const {
    if (watched_->spare < 0 || watched_->position >= watched_->calls.size()) return false;
    const Call& call = watched_->calls[watched_->position];
    if (call.kind == Call::Kind::kPython || !(*call.op == op)) return false;
    const auto arguments = torch::jit::last(stack, op.schema().arguments().size());
    for (const IValue& argument : arguments) {
      if (any_tensor(argument, is_pythons)) return false;
    }
    return call.kind == Call::Kind::kPasses || !is_on_ours(call, arguments);
  }

  /// False where a device had no room for it, with nothing done: then it is Python's.
  bool pass(const OperatorHandle& op, Stack* stack) const {
    const Call& call = watched_->calls[watched_->position];
    const std::size_t count = op.schema().arguments().size();
    const auto arguments = torch::jit::last(*stack, count).vec();
    ++watched_->position;
    ++watched_->passed;
    try {
      const torch::torch_dispatch_mode::StashTorchDispatchModeGuard without_mode;
      op.callBoxed(stack);
    } catch (const c10::OutOfMemoryError&) {
      if (!call.written.empty()) throw;  // it may have done a part
      --watched_->position;
      --watched_->passed;
      *stack = arguments;
      return false;
    }
    if (call.made.has_value()) {
      take(*call.made, torch::jit::last(*stack, op.schema().returns().size()));
    }
    return true;
  }

 private:
  /// What results have above the `made` bytes that were recorded of them.
  void take(std::size_t made, c10::ArrayRef<IValue> results) const {
    std::vector<const c10::StorageImpl*> seen;
    std::size_t size = 0;
    for (const IValue& result : results) {
      any_tensor(result, [&](const c10::TensorImpl* tensor) {
        if (!tensor->has_storage()) return false;
        const auto* storage = tensor->storage().unsafeGetStorageImpl();
        if (std::find(seen.begin(), seen.end(), storage) == seen.end()) {
          seen.push_back(storage);
          size += storage->nbytes();
        }
        return false;
      });
    }
    if (size > made && size >= watched_->least) {
      watched_->spare -= static_cast<std::int64_t>(size - made);
    }
  }

  bool is_on_ours(const Call& call, c10::ArrayRef<IValue> arguments) const {
    const py::gil_scoped_acquire lock;
    const auto is_in = [](PyObject* set) {
      return [storages = py::reinterpret_borrow<py::set>(set)](const c10::TensorImpl* tensor) {
        if (!tensor->has_storage()) return true;  // for Python to decide
        const auto* storage = tensor->storage().unsafeGetStorageImpl();
        return storages.contains(reinterpret_cast<std::uintptr_t>(storage));
      };
    };
    for (const IValue& argument : arguments) {
      if (any_tensor(argument, is_in(ours_))) return true;
    }
    for (const std::size_t position : call.written) {
      if (any_tensor(arguments[position], is_in(read_later_))) return true;
    }
    return false;
  }

  std::atomic<PyObject*> mode_ = nullptr;  // others are read where it is this thread's
  PyObject* ours_ = nullptr;
  PyObject* read_later_ = nullptr;
  Watched* watched_ = nullptr;
};

Observer observer;

/// PyTorch's table of functions with the observer before Python. See Note [Before Python].
class BeforePython final : public Delegate {
 public:
  using Delegate::Delegate;

  void dispatch(const OperatorHandle& op, Stack* stack) const override {
    if (!observer.is_watching() || !observer.passes(op, *stack) || !observer.pass(op, stack)) {
      to->dispatch(op, stack);
    }
  }

  /// A copy of a tensor's metadata, which what autograd saves of a leaf takes: for a mode the op
  /// aten::detach, that has not come through the dispatcher.
  c10::intrusive_ptr<c10::TensorImpl> detach(const c10::TensorImpl* self) const override {
    if (observer.is_watching()) {
      static const OperatorHandle op =
          c10::Dispatcher::singleton().findSchemaOrThrow("aten::detach", "");
      Stack stack{at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::unsafe_reclaim_from_nonowning(
          const_cast<c10::TensorImpl*>(self)))};
      if (observer.passes(op, stack) && observer.pass(op, &stack)) {
        return stack.back().toTensor().getIntrusivePtr();
      }
    }
    return to->detach(self);
  }
};

}  // namespace

void install_observer() {
  auto* interpreter = getPyInterpreter();
  // Kept until the process ends: tensors that outlive everything call it.
  static const auto* before = new BeforePython(interpreter->vtable_);
  interpreter->vtable_ = before;
}

void start_observer(PyObject* mode, PyObject* ours, PyObject* read_later, Watched& watched) {
  observer.start(mode, ours, read_later, watched);
}

void stop_observer(const Watched& watched) { observer.stop(watched); }

}  // namespace tidepool_torch
