// One kernel for every op: PyTorch's own for the CPU, over the same bytes, as a task of the stream.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/resize_native.h>
#include <torch/library.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <unordered_map>

#include "tensors.h"

namespace sim {
namespace {

using c10::IValue;
using torch::jit::Stack;
using Change = std::function<at::Tensor(const at::Tensor&)>;

/// Arguments that a kernel writes though its schema does not say so: running statistics.
const std::map<std::string, std::vector<size_t>> kHiddenWrites = {
    {"aten::native_batch_norm", {3, 4}}};

struct WithoutPython {
  c10::impl::ExcludeDispatchKeyGuard guard{
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot,
                           c10::DispatchKey::PythonDispatcher})};
  at::AutoDispatchBelowAutograd below;
};

bool is_defined(const IValue& value) { return value.isTensor() && value.toTensor().defined(); }

IValue changed_list(const IValue& list, const Change& change) {
  c10::List<std::optional<at::Tensor>> result;
  for (const IValue& value : list.toListRef()) {
    result.push_back(is_defined(value) ? std::optional(change(value.toTensor())) : std::nullopt);
  }
  return result;
}

/// Returns an argument with other tensors in the place of its own.
IValue changed(const IValue& value, const Change& change) {
  if (value.isTensor()) return is_defined(value) ? IValue(change(value.toTensor())) : value;
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : value.toTensorVector()) list.push_back(t.defined() ? change(t) : t);
    return list;
  }
  if (value.isList()) {
    for (const IValue& one : value.toListRef()) {
      if (one.isTensor()) return changed_list(value, change);
    }
  }
  if (value.isDevice() && value.toDevice().type() == kSim) return c10::Device(at::kCPU);
  return value;
}

void each_tensor(const IValue& value, const std::function<void(const at::Tensor&)>& look) {
  if (is_defined(value)) {
    look(value.toTensor());
  } else if (value.isList()) {
    for (const IValue& one : value.toListRef()) {
      if (is_defined(one)) look(one.toTensor());
    }
  }
}

at::Tensor with_number_mark(at::Tensor to, const at::Tensor& from) {
  if (from.unsafeGetTensorImpl()->is_wrapped_number())
    to.unsafeGetTensorImpl()->set_wrapped_number(true);
  return to;
}

at::Tensor as_meta(const at::Tensor& tensor) {
  return with_number_mark(empty_like_on(at::kMeta, tensor), tensor);
}

at::Tensor as_zeros(const at::Tensor& tensor) { return empty_like_on(at::kCPU, tensor).zero_(); }

at::Tensor as_argument(const at::Tensor& tensor) {
  return is_sim(tensor) ? as_cpu(tensor) : with_number_mark(tensor.detach().clone(), tensor);
}

Stack changed_all(const Stack& values, const Change& change) {
  Stack result;
  for (const IValue& value : values) result.push_back(changed(value, change));
  return result;
}

void describe(std::ostream& out, const IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& t = value.toTensor();
    if (!t.defined()) return void(out << "none;");
    out << t.sizes() << t.strides() << t.scalar_type() << t.device().type()
        << t.unsafeGetTensorImpl()->is_wrapped_number() << ';';
  } else if (value.isList()) {
    out << '[';
    for (const IValue& one : value.toListRef()) describe(out, one);
    out << ']';
  } else {
    out << value.tagKind() << value << ';';
  }
}

/// Returns what an op makes, without its values: by its form without bytes, or by a run on zeros.
Stack found_outputs_of(const c10::OperatorHandle& op, const Stack& arguments) {
  const WithoutPython guard;
  try {
    Stack metas = changed_all(arguments, as_meta);
    for (IValue& value : metas) {
      if (value.isDevice()) value = c10::Device(at::kMeta);
    }
    op.callBoxed(&metas);
    return metas;
  } catch (const std::exception&) {
    device().locked([](Sim& sim) { ++sim.counters.dry_runs; });
    Stack zeros = changed_all(arguments, as_zeros);
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const auto state = generator.get_state();
    op.callBoxed(&zeros);
    generator.set_state(state);
    return zeros;
  }
}

/// Returns the same; found once for each op and kind of arguments.
Stack outputs_of(const c10::OperatorHandle& op, const Stack& arguments) {
  static std::mutex mutex;
  static std::unordered_map<std::string, Stack> known;
  std::ostringstream text;
  text << op.operator_name() << ' ' << c10::get_default_dtype() << ' ';
  for (const IValue& value : arguments) {
    if (value.isGenerator()) return found_outputs_of(op, arguments);
    describe(text, value);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = known.find(text.str());
    if (found != known.end()) return found->second;
  }
  Stack made = changed_all(found_outputs_of(op, arguments), as_meta);
  const std::lock_guard<std::mutex> lock(mutex);
  return known[text.str()] = made;
}

const c10::AliasInfo* alias_of(const c10::Argument& argument) { return argument.alias_info(); }

bool is_written(const c10::Argument& argument) {
  return alias_of(argument) != nullptr && alias_of(argument)->isWrite();
}

/// Gives an out= that has no elements yet its size.
void resize_outputs(const c10::OperatorHandle& op, const Stack& arguments) {
  const auto& schema = op.schema();
  for (size_t k = 0; k < arguments.size(); ++k) {
    const c10::Argument& argument = schema.arguments()[k];
    if (!is_written(argument) || !argument.kwarg_only() || !is_defined(arguments[k])) continue;
    const at::Tensor& out = arguments[k].toTensor();
    if (out.numel() > 0) continue;
    const Stack made = outputs_of(op, arguments);
    for (size_t i = 0; i < made.size(); ++i) {
      const auto* alias = alias_of(schema.returns()[i]);
      if (alias != nullptr && *alias == *alias_of(argument)) {
        at::native::resize_(out, made[i].toTensor().sizes(), std::nullopt);
      }
    }
  }
}

bool makes_tensors(const c10::Argument& result) {
  return result.type()->isSubtypeOf(*c10::TensorType::get()) ||
         result.type()->isSubtypeOf(*c10::ListType::ofTensors()) ||
         result.type()->isSubtypeOf(*c10::getTypePtr<std::optional<at::Tensor>>());
}

Accesses accesses_of(const c10::FunctionSchema& schema, const Stack& arguments) {
  Accesses accesses;
  const auto hidden = kHiddenWrites.find(schema.name());
  for (size_t i = 0; i < arguments.size(); ++i) {
    bool writes = is_written(schema.arguments()[i]);
    if (hidden != kHiddenWrites.end()) {
      writes = writes || std::count(hidden->second.begin(), hidden->second.end(), i) > 0;
    }
    each_tensor(arguments[i], [&](const at::Tensor& t) {
      if (is_sim(t)) accesses.add(t, writes);
    });
  }
  return accesses;
}

/// Runs an op whose result the host reads, or whose sizes depend on values: it waits for the
/// arguments.
void run_for_values(const c10::OperatorHandle& op, const Accesses& accesses, Stack arguments,
                    Stack* stack) {
  const int stream = current_stream;
  device().ask(stream, op.schema().name(), accesses.ranges, 0, [] {});
  device().host_waits(device().record(stream));
  const WithoutPython guard;
  op.callBoxed(&arguments);
  for (const IValue& value : arguments) {
    stack->push_back(
        changed(value, [](const at::Tensor& t) { return t.to(c10::Device(kSim, 0)); }));
  }
}

/// Calls an op on the CPU. An out= of one number gets a tensor that can grow, for losses do more in
/// it.
void call_on_cpu(const c10::OperatorHandle& op, Stack* arguments) {
  std::vector<std::pair<at::Tensor, at::Tensor>> single;  // (what is to have it, what the op fills)
  for (size_t k = 0; k < arguments->size(); ++k) {
    const c10::Argument& argument = op.schema().arguments()[k];
    IValue& value = (*arguments)[k];
    if (!is_written(argument) || !argument.kwarg_only() || !is_defined(value)) continue;
    const at::Tensor out = value.toTensor();
    if (out.dim() > 0) continue;
    single.emplace_back(out, out.clone());
    value = single.back().second;
  }
  op.callBoxed(arguments);
  for (const auto& [to, from] : single) to.copy_(from);
}

/// Runs an op on the CPU and puts its results where they belong; a random one draws from `seed`.
void run_task(const c10::OperatorHandle& op, Stack arguments, const Stack& targets,
              std::optional<uint64_t> seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  at::Tensor state;
  if (seed) {
    state = generator.get_state();
    generator.set_current_seed(*seed);
  }
  call_on_cpu(op, &arguments);
  if (seed) generator.set_state(state);
  for (size_t i = 0; i < targets.size(); ++i) {
    std::vector<at::Tensor> to, from;
    each_tensor(targets[i], [&](const at::Tensor& t) { to.push_back(t); });
    if (to.empty()) continue;
    each_tensor(arguments[i], [&](const at::Tensor& t) { from.push_back(t); });
    for (size_t k = 0; k < to.size(); ++k) {
      // Statistics that nobody needs have no elements on the CPU.
      if (from[k].numel() > 0 || to[k].numel() == 0) to[k].copy_(from[k]);
    }
  }
}

/// Returns the argument that a result is.
const IValue& argument_of(const c10::FunctionSchema& schema, const Stack& arguments,
                          const c10::AliasInfo& alias) {
  for (size_t k = 0; k < arguments.size(); ++k) {
    if (is_written(schema.arguments()[k]) && *alias_of(schema.arguments()[k]) == alias)
      return arguments[k];
  }
  TORCH_CHECK(false, "sim: ", schema.name(), " returns what is none of its arguments");
}

/// Ops that take tensors of the host beside those of the device, as CUDA's do: indices.
bool takes_hosts(const c10::FunctionSchema& schema) {
  return schema.name().find("index") != std::string::npos;
}

/// Raises what CUDA does where a tensor with elements lies on the host.
void check_places(const c10::FunctionSchema& schema, const Stack& arguments) {
  if (takes_hosts(schema)) return;
  for (const IValue& argument : arguments) {
    each_tensor(argument, [&](const at::Tensor& t) {
      TORCH_CHECK(is_sim(t) || t.dim() == 0 || t.numel() == 0,
                  "Expected all tensors to be on the same device, but found at least two devices, ",
                  t.device(), " and sim:0! (", schema.name(), ")");
    });
  }
}

void kernel(const c10::OperatorHandle& op, Stack* stack) {
  const auto& schema = op.schema();
  const auto count = static_cast<int64_t>(schema.arguments().size());
  const Stack arguments(stack->end() - count, stack->end());
  torch::jit::drop(*stack, count);
  check_places(schema, arguments);
  device().locked([](Sim& sim) { ++sim.counters.kernels; });
  bool makes = false, has_values = op.hasTag(at::Tag::dynamic_output_shape);
  for (const c10::Argument& result : schema.returns()) {
    makes = makes || alias_of(result) == nullptr;
    has_values = has_values || !makes_tensors(result);
    TORCH_CHECK_NOT_IMPLEMENTED(alias_of(result) == nullptr || is_written(result),
                                "sim: ", schema.name(), " makes a view, and has no kernel here");
  }
  resize_outputs(op, arguments);
  Accesses accesses = accesses_of(schema, arguments);
  Stack on_cpu = changed_all(arguments, as_argument);
  if (has_values) return run_for_values(op, accesses, std::move(on_cpu), stack);

  Stack results = makes ? outputs_of(op, arguments) : Stack(schema.returns().size());
  Stack targets(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (const auto* alias = alias_of(schema.returns()[i])) {
      results[i] = argument_of(schema, arguments, *alias);
      continue;
    }
    results[i] = changed(results[i], [](const at::Tensor& t) {
      return empty_like_on({kSim, 0}, t);
    });
    each_tensor(results[i], [&](const at::Tensor& t) { accesses.add(t, true); });
    targets[i] = changed(results[i], as_cpu);
  }
  std::optional<uint64_t> seed;
  const bool draws = op.hasTag(at::Tag::nondeterministic_seeded);
  const int64_t takes = device().locked([&](Sim& sim) {
    if (draws) seed = sim.generator.next();
    return sim.rates.of_kernel(accesses.bytes);
  });
  device().ask(current_stream, schema.name(), accesses.ranges, takes,
               [op, on_cpu, targets, seed] { run_task(op, on_cpu, targets, seed); });
  for (IValue& result : results) stack->push_back(std::move(result));
}

int64_t choose_attention(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                         const std::optional<at::Tensor>&, double, bool, std::optional<double>,
                         bool) {
  return 0;  // by ops that every device has
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  for (const char* name : {"convolution", "convolution_backward", "native_layer_norm"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&kernel>());
  }
  library.impl("_fused_sdp_choice", choose_attention);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&kernel>());
}

}  // namespace
}  // namespace sim

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &sim::choose_attention)
}
