// PyTorch's table of functions of the interpreter, passed on function by function: the base of one
// that changes some. The list is that of the torch that this is built for; where another torch has
// another list this does not compile, and the package runs without the native module.
#pragma once

#include <c10/core/impl/PyInterpreter.h>

#include <string>

namespace tidepool_torch {

struct Delegate : c10::impl::PyInterpreterVTable {
  using Tensor = const c10::TensorImpl*;
  using Type = c10::DeviceType;
  using Word = std::uintptr_t;
  using Stack = torch::jit::Stack;

  explicit Delegate(const c10::impl::PyInterpreterVTable* original) : to(original) {}

  std::string name() const override { return to->name(); }
  void incref(PyObject* object) const override { to->incref(object); }
  void decref(PyObject* object) const override { to->decref(object); }
  bool try_incref(const c10::impl::PyObjectSlot& slot) const override {
    return to->try_incref(slot);
  }
  size_t refcnt(PyObject* object) const override { return to->refcnt(object); }
  void reset_backward_hooks(Tensor self) const override { to->reset_backward_hooks(self); }

  void dispatch(const c10::OperatorHandle& op, Stack* stack) const override {
    to->dispatch(op, stack);
  }
  void python_dispatcher(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                         Stack* stack) const override {
    to->python_dispatcher(op, keys, stack);
  }
  void python_op_registration_trampoline(const c10::OperatorHandle& op, c10::DispatchKey key,
                                         c10::DispatchKeySet keys, Stack* stack, bool with_keyset,
                                         bool with_op) const override {
    to->python_op_registration_trampoline(op, key, keys, stack, with_keyset, with_op);
  }
  void reportErrorCallback(PyObject* callback, c10::DispatchKey key) const override {
    to->reportErrorCallback(callback, key);
  }
  void throw_abstract_impl_not_imported_error(std::string op, const char* module,
                                              const char* context) const override {
    to->throw_abstract_impl_not_imported_error(std::move(op), module, context);
  }

  c10::intrusive_ptr<c10::TensorImpl> detach(Tensor self) const override {
    return to->detach(self);
  }
  bool is_contiguous(Tensor self, at::MemoryFormat format) const override {
    return to->is_contiguous(self, format);
  }
  c10::SymBool sym_is_contiguous(Tensor self, at::MemoryFormat format) const override {
    return to->sym_is_contiguous(self, format);
  }
  bool is_strides_like(Tensor self, at::MemoryFormat format) const override {
    return to->is_strides_like(self, format);
  }
  bool is_non_overlapping_and_dense(Tensor self) const override {
    return to->is_non_overlapping_and_dense(self);
  }
  c10::Device device(Tensor self) const override { return to->device(self); }
  int64_t dim(Tensor self) const override { return to->dim(self); }
  c10::IntArrayRef strides(Tensor self) const override { return to->strides(self); }
  c10::IntArrayRef sizes(Tensor self) const override { return to->sizes(self); }
  c10::SymIntArrayRef sym_sizes(Tensor self) const override { return to->sym_sizes(self); }
  c10::Layout layout(Tensor self) const override { return to->layout(self); }
  int64_t numel(Tensor self) const override { return to->numel(self); }
  c10::SymInt sym_numel(Tensor self) const override { return to->sym_numel(self); }
  c10::SymIntArrayRef sym_strides(Tensor self) const override { return to->sym_strides(self); }
  c10::SymInt sym_storage_offset(Tensor self) const override {
    return to->sym_storage_offset(self);
  }

  void trace_gpu_event_creation(Type type, Word event) const override {
    to->trace_gpu_event_creation(type, event);
  }
  void trace_gpu_event_deletion(Type type, Word event) const override {
    to->trace_gpu_event_deletion(type, event);
  }
  void trace_gpu_event_record(Type type, Word event, Word stream) const override {
    to->trace_gpu_event_record(type, event, stream);
  }
  void trace_gpu_event_wait(Type type, Word event, Word stream) const override {
    to->trace_gpu_event_wait(type, event, stream);
  }
  void trace_gpu_memory_allocation(Type type, Word pointer) const override {
    to->trace_gpu_memory_allocation(type, pointer);
  }
  void trace_gpu_memory_deallocation(Type type, Word pointer) const override {
    to->trace_gpu_memory_deallocation(type, pointer);
  }
  void trace_gpu_stream_creation(Type type, Word stream) const override {
    to->trace_gpu_stream_creation(type, stream);
  }
  void trace_gpu_device_synchronization(Type type) const override {
    to->trace_gpu_device_synchronization(type);
  }
  void trace_gpu_stream_synchronization(Type type, Word stream) const override {
    to->trace_gpu_stream_synchronization(type, stream);
  }
  void trace_gpu_event_synchronization(Type type, Word event) const override {
    to->trace_gpu_event_synchronization(type, event);
  }

 protected:
  const c10::impl::PyInterpreterVTable* to;
};

}  // namespace tidepool_torch
