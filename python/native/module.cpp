// The Python module tidepool_torch_native._native.
#include <c10/core/DispatchKey.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <tuple>
#include <vector>

#include "observer.h"

namespace tidepool_torch {
namespace {

namespace py = pybind11;

/// One plan's calls. Each is (name, overload, writes others, positions of what it writes), or None
/// for a call that is Python's.
class Watched {
 public:
  explicit Watched(const py::list& calls) {
    for (const py::handle call : calls) calls_.push_back(call.is_none() ? Call{} : read(call));
  }

  const Calls& calls() const { return calls_; }

 private:
  static Call read(const py::handle& from) {
    const auto [name, overload, writes_others, written] =
        py::cast<std::tuple<std::string, std::string, bool, std::vector<std::size_t>>>(from);
    Call call;
    call.op = c10::Dispatcher::singleton().findSchema({name, overload});
    if (call.op.has_value()) {
      call.kind = writes_others ? Call::Kind::kWritesOthers : Call::Kind::kPasses;
    }
    call.written = written;
    return call;
  }

  Calls calls_;
};

}  // namespace
}  // namespace tidepool_torch

PYBIND11_MODULE(_native, module) {
  using namespace tidepool_torch;
  install_observer();
  py::class_<Watched>(module, "Watched").def(py::init<const py::list&>());
  module.def("start",
             [](py::handle mode, py::handle executor, const py::set& ours, const Watched& watched) {
               start_observer(mode.ptr(), executor.ptr(), ours.ptr(), watched.calls());
             });
  module.def("stop", &stop_observer);
  module.def("passed_calls", &passed_calls);
}
