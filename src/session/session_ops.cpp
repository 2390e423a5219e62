// Ops of a session whose functions it is given, and those of its own.
#include <fmt/format.h>

#include <utility>

#include "base/at.h"
#include "session/session.h"
#include "session/session_error.h"

namespace tidepool {
namespace {

constexpr StreamId kCompute = 0;

}  // namespace

void Session::run(const Launch& function, std::span<std::byte* const> pointers) {
  Device& device = *spec_.device;
  if (!device.enqueues_kernels()) return function(pointers, nullptr);
  struct Context {
    const Launch* function;
    std::span<std::byte* const> pointers;
  } context{&function, pointers};
  Work work;
  work.context = &context;
  work.run = [](void* raw, std::int64_t, NativeStream stream) {
    const auto& c = *static_cast<const Context*>(raw);
    (*c.function)(c.pointers, stream);
  };
  device.launch(kCompute, work);
  device.record(op_ended_, kCompute);
  device.synchronize(op_ended_);
}

void Session::exec_locked(std::string_view op, std::span<const Use> uses, bool pure,
                          const Launch& function) {
  const auto pointers = begin_op(op, uses, pure, &function);
  try {
    run(function, pointers);
  } catch (...) {
    end_op();
    throw;
  }
  end_op();
}

void Session::exec(std::string_view op, std::span<const Use> uses, bool pure,
                   const Function& function) {
  lock_for("exec");
  const std::lock_guard guard(caller_, std::adopt_lock);
  refuse_where_enqueued("exec");
  // Not the program's own where a plan may keep it: that may be gone by then.
  const Launch launch =
      pure ? Launch([function](auto pointers, NativeStream) { function(pointers); })
           : Launch([&function](auto pointers, NativeStream) { function(pointers); });
  exec_locked(op, uses, pure, launch);
}

void Session::launch(std::string_view op, std::span<const Use> uses, bool pure,
                     const Launch& function) {
  lock_for("launch");
  const std::lock_guard guard(caller_, std::adopt_lock);
  exec_locked(op, uses, pure, function);
}

void Session::refuse_where_enqueued(const char* call) const {
  if (spec_.device->enqueues_kernels()) {
    misuse(fmt::format("{}: this device's kernels are enqueued, which launch does", call));
  }
}

void Session::upload(BlockHandle block, const void* from) {
  lock_for("upload");
  const std::lock_guard guard(caller_, std::adopt_lock);
  const Bytes bytes = residency_.block(slot_of(block, "upload")).bytes;
  const Use use{block, BlockUse::write};
  const auto pointers = begin_op("upload", std::span(&use, 1), false, nullptr);
  residency_.from_host(pointers[0], from, bytes);
  end_op();
}

void Session::download(BlockHandle block, void* to) {
  lock_for("download");
  const std::lock_guard guard(caller_, std::adopt_lock);
  const Bytes bytes = residency_.block(slot_of(block, "download")).bytes;
  const Use use{block, BlockUse::read};
  const auto pointers = begin_op("download", std::span(&use, 1), false, nullptr);
  residency_.to_host(to, pointers[0], bytes);
  end_op();
}

void Session::run_again(OpId op, std::span<std::byte* const> pointers) {
  run(functions_[at(op)], pointers);
}

}  // namespace tidepool
