#include "nn/data_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/at.h"
#include "nn/optimizers.h"

namespace tidepool::nn {
namespace {

class Replicator {
 public:
  Replicator(const TrainingProgram& part, const TrainingOptions& options, const KernelList& kernels)
      : part_(part), options_(options), kernels_(kernels) {}

  DataParallel make() {
    assert(options_.devices > 1 && part_.program.batch * options_.devices == options_.batch);
    describe();
    add_tensors();
    for (std::size_t i = 0; i < part_.ops.size(); ++i) add_op(i);
    return std::move(out_);
  }

 private:
  /// All but ops, tensors and parameters.
  void describe() {
    TrainingProgram& whole = out_.whole;
    whole.purpose = part_.purpose;
    whole.inputs = part_.inputs;
    whole.survival = part_.survival;
    whole.kernels = part_.kernels;
    whole.image = part_.image;
    whole.classes = part_.classes;
    whole.answers = part_.answers;
    whole.program.name = part_.program.name;
    whole.program.batch = options_.batch;
    whole.program.sub_batch = part_.program.sub_batch;
    whole.program.layers = part_.program.layers;
    out_.replication.devices = options_.devices;
    out_.replication.ops.resize(at(options_.devices));
    out_.replication.tensors.resize(at(options_.devices));
  }

  /// Names of device 0 are those of the part.
  static std::string name_on(const std::string& name, std::int32_t device) {
    return device == 0 ? name : fmt::format("{}@device{}", name, device);
  }

  TensorId add_tensor(Tensor tensor, const TensorDesc& desc) {
    out_.whole.program.tensors.push_back(std::move(tensor));
    out_.whole.tensors.push_back(desc);
    return static_cast<TensorId>(out_.whole.tensors.size()) - 1;
  }

  void add_tensors() {
    std::vector<std::size_t> parameter_of(part_.tensors.size(), part_.parameters.size());
    for (std::size_t p = 0; p < part_.parameters.size(); ++p) {
      if (part_.parameters[p].tensor != kNone) parameter_of[at(part_.parameters[p].tensor)] = p;
    }
    out_.whole.parameters = part_.parameters;
    for (std::size_t t = 0; t < part_.tensors.size(); ++t) {
      const bool is_weight = parameter_of[t] < part_.parameters.size();
      TensorId last = kNone;
      for (std::int32_t d = 0; d < options_.devices; ++d) {
        Tensor tensor = part_.program.tensors[t];
        tensor.name = name_on(tensor.name, d);
        if (d == 0 || !is_weight) last = add_tensor(std::move(tensor), part_.tensors[t]);
        out_.replication.tensors[at(d)].push_back(last);
      }
      if (is_weight) add_what_the_host_has(parameter_of[t], last);
    }
  }

  /// Right behind its weight, as in programs of one device: checksums of states are the same.
  void add_what_the_host_has(std::size_t weight, TensorId tensor) {
    std::vector<Parameter>& parameters = out_.whole.parameters;
    const TensorDesc desc = out_.whole.tensors[at(tensor)];
    parameters[weight].tensor = tensor;
    for (const OperandRule& rule : optimizer_state(options_)) {
      parameters[weight].state.push_back(
          add_tensor({parameters[weight].name + "." + rule.name, desc.bytes(),
                      TensorKind::optimizer_state, true},
                     desc));
    }
    // The layer's statistics.
    for (std::size_t p = weight + 1; p < parameters.size(); ++p) {
      if (part_.parameters[p].tensor != kNone) break;
      parameters[p].tensor =
          add_tensor({parameters[p].name, desc.bytes(), TensorKind::weight, true}, desc);
    }
  }

  void push(Op op, OpDesc desc) {
    out_.whole.program.ops.push_back(std::move(op));
    out_.whole.ops.push_back(std::move(desc));
  }

  void add_op(std::size_t i) {
    if (const auto* collected = part_.ops[i].find<CollectGradient>()) {
      const Parameter& parameter = out_.whole.parameters[collected->parameter];
      options_.naive_accumulation ? add_update_on_device(i, parameter) : add_update(i, parameter);
      return share_last_op();
    }
    if (const auto* statistics = part_.ops[i].find<CollectStatistics>()) {
      add_statistics(i, *statistics);
      return share_last_op();
    }
    for (std::int32_t d = 0; d < options_.devices; ++d) {
      out_.replication.ops[at(d)].push_back(static_cast<OpId>(out_.whole.ops.size()));
      Op op = part_.program.ops[i];
      op.name = name_on(op.name, d);
      if (op.place == OpPlace::device) op.device = d;
      for (Access& a : op.accesses) a.tensor = out_.replication.tensors[at(d)][at(a.tensor)];
      OpDesc desc = part_.ops[i];
      desc.first_sample += d * part_.program.batch;
      push(std::move(op), std::move(desc));
    }
  }

  /// It is the op `i` of the part on every device.
  void share_last_op() {
    const auto id = static_cast<OpId>(out_.whole.ops.size()) - 1;
    for (std::vector<OpId>& ops : out_.replication.ops) ops.push_back(id);
  }

  /// Carries the statistics of all parts into the running ones, in the order of the devices.
  void add_statistics(std::size_t i, const CollectStatistics& collected) {
    const std::vector<Parameter>& parameters = out_.whole.parameters;
    std::vector<TensorId> operands{parameters[collected.running_mean].tensor,
                                   parameters[collected.running_mean + 1].tensor};
    Op op = part_.program.ops[i];
    for (const std::vector<TensorId>& tensors : out_.replication.tensors) {
      for (const Access& a : op.accesses) operands.push_back(tensors[at(a.tensor)]);
    }
    OpDesc desc{HostBatchNormStatistics{collected.update, 2L * options_.devices}};
    op.kind = desc.kind_name();
    op.accesses.clear();
    push_host_op(std::move(op), std::move(desc), operands);
  }

  /// In the place of what collects this gradient on every device.
  void add_update(std::size_t i, const Parameter& parameter) {
    OpDesc desc{host_update_op(options_)};
    Op op;
    op.name = parameter.name + ".update";
    op.kind = desc.kind_name();
    op.place = OpPlace::host;
    op.round = kNone;
    op.guard = part_.program.ops[i].guard;
    op.recomputable = false;
    op.random = desc.random();
    op.phase = Phase::update;
    op.algorithms.push_back({"host"});
    std::vector<TensorId> operands;
    for (const std::vector<TensorId>& tensors : out_.replication.tensors) {
      operands.push_back(tensors[at(part_.program.ops[i].accesses[0].tensor)]);
    }
    operands.push_back(parameter.tensor);
    operands.insert(operands.end(), parameter.state.begin(), parameter.state.end());
    push_host_op(std::move(op), std::move(desc), operands);
  }

  void push_host_op(Op op, OpDesc desc, const std::vector<TensorId>& operands) {
    add_operands(op, desc, operands);
    op.flops = desc.flops();
    op.traffic = desc.traffic();
    push(std::move(op), std::move(desc));
  }

  void add_operands(Op& op, OpDesc& desc, const std::vector<TensorId>& operands) const {
    const std::vector<OperandRule> rules = desc.rules();
    assert(rules.size() == operands.size());
    for (std::size_t k = 0; k < operands.size(); ++k) {
      op.accesses.push_back({operands[k], rules[k].mode});
      desc.operands.push_back(out_.whole.tensors[at(operands[k])]);
    }
  }

  /// The same on device 0: an op for each addition, and the update.
  void add_update_on_device(std::size_t i, const Parameter& parameter) {
    const auto gradient = [&](std::int32_t device) {
      return out_.replication.tensors[at(device)][at(part_.program.ops[i].accesses[0].tensor)];
    };
    for (std::int32_t d = 1; d < options_.devices; ++d) {
      add_device_op(fmt::format("{}.add@device{}", parameter.name, d),
                    {.op = AddForward{}, .in_place = true}, {gradient(0), gradient(d)});
    }
    std::vector<TensorId> operands{gradient(0), control(), parameter.tensor};
    operands.insert(operands.end(), parameter.state.begin(), parameter.state.end());
    add_device_op(parameter.name + ".update", {update_op(options_)}, operands);
  }

  /// Of device 0.
  [[nodiscard]] TensorId control() const {
    const auto fed =
        std::ranges::find_if(part_.ops, [](const OpDesc& desc) { return desc.is<FeedControl>(); });
    assert(fed != part_.ops.end());
    const auto& op = part_.program.ops[static_cast<std::size_t>(fed - part_.ops.begin())];
    return out_.replication.tensors[0][at(op.accesses[0].tensor)];
  }

  void add_device_op(std::string name, OpDesc desc, const std::vector<TensorId>& operands) {
    Op op;
    op.name = std::move(name);
    op.kind = desc.kind_name();
    op.round = kNone;
    op.recomputable = false;
    op.phase = Phase::update;
    add_operands(op, desc, operands);
    const std::unique_ptr<Kernel> kernel = kernels_.make(desc);
    assert(kernel && "the program of one device has them too");
    for (const KernelAlgorithm& a : kernel->algorithms()) {
      op.algorithms.push_back({a.name, Nanos{}, a.workspace, a.deterministic});
    }
    op.flops = desc.flops();
    op.traffic = desc.traffic();
    push(std::move(op), std::move(desc));
  }

  const TrainingProgram& part_;
  const TrainingOptions& options_;
  const KernelList& kernels_;
  DataParallel out_;
};

}  // namespace

DataParallel replicate(const TrainingProgram& part, const TrainingOptions& options,
                       const KernelList& kernels) {
  return Replicator(part, options, kernels).make();
}

}  // namespace tidepool::nn
