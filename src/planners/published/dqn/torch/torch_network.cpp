#include "planners/published/dqn/torch/torch_network.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/own_module.h"

namespace tidepool::dqn {
namespace {

constexpr const char* kFile = "tidepool_torch.so";
constexpr const char* kPackage = "libtorch-dev";

struct Module {
  MakeTorchCalls make = nullptr;
  std::string why_not;  ///< empty: it is loaded

  /// It stays loaded: libtorch cannot be unloaded.
  Module() {
    std::string reason;
    void* const found =
        load_own_module(own_module(kFile, TIDEPOOL_TORCH_MODULE), kMakeTorchCalls, reason);
    make = reinterpret_cast<MakeTorchCalls>(found);
    if (make != nullptr) return;
    why_not = fmt::format("the Q-network needs libtorch (Debian package {}): {}", kPackage, reason);
  }
};

const Module& module() {
  static const Module loaded;
  return loaded;
}

class TorchNetwork : public QNetwork {
 public:
  TorchNetwork(const QNetworkOptions& options, std::unique_ptr<TorchCalls> calls)
      : options_(options), calls_(std::move(calls)) {}

  void set_graph(const EventGraph& graph) override { calls_->set_graph(graph); }
  std::vector<float> values(const AgentState& state) override { return calls_->values(state); }
  double learn(std::span<const Transition* const> batch) override { return calls_->learn(batch); }
  [[nodiscard]] std::string save() const override { return write_network(calls_->weights()); }

  Result<void> load(std::string_view saved) override {
    const auto weights = read_network(saved);
    if (!weights) return fail(weights.error());
    if (weights->width != options_.width || weights->hops != options_.hops) {
      return fail(ErrorCode::bad_input,
                  fmt::format("is a network of width {} with {} hops, not of width {} with {}",
                              weights->width, weights->hops, options_.width, options_.hops));
    }
    calls_->set_weights(*weights);
    return {};
  }

 private:
  QNetworkOptions options_;
  std::unique_ptr<TorchCalls> calls_;
};

}  // namespace

Result<std::unique_ptr<TorchCalls>> make_torch_calls(const QNetworkOptions& options) {
  if (options.width < 1 || options.width > kMostWidth || options.hops < 1 ||
      options.hops > kMostHops) {
    return fail(ErrorCode::usage,
                fmt::format("a Q-network of width {} with {} hops", options.width, options.hops));
  }
  const Module& loaded = module();
  if (loaded.make == nullptr) return fail(ErrorCode::runtime, loaded.why_not);
  const NetworkWeights weights = initial_weights(options.width, options.hops, options.seed);
  return std::unique_ptr<TorchCalls>(loaded.make(options, weights));
}

Result<std::unique_ptr<QNetwork>> make_torch_network(const QNetworkOptions& options) {
  auto calls = make_torch_calls(options);
  if (!calls) return fail(calls.error());
  return std::make_unique<TorchNetwork>(options, std::move(*calls));
}

}  // namespace tidepool::dqn
