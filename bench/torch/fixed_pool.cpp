// libtorch trains a small convolutional network and a small transformer, first with its own
// allocator, then with blocks from a Session's FixedPool (session/fixed_pool.h): losses bit for
// bit, bytes beside the most that were live, in the first two thirds of the iterations and in the
// last, and what a call takes in the last.
//
//   bench_torch_fixed_pool [ITERATIONS]
#include "session/fixed_pool.h"

#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

using tidepool::Bytes;
using tidepool::FixedPool;
using tidepool::FixedPoolReport;

/// Serves libtorch from a pool. Counts calls and their time.
class PoolAllocator final : public c10::Allocator {
 public:
  FixedPool* pool = nullptr;
  c10::Allocator* own = nullptr;
  std::int64_t calls = 0;
  std::chrono::nanoseconds time{};

  c10::DataPtr allocate(std::size_t bytes) const override {
    auto& self = const_cast<PoolAllocator&>(*this);
    if (pool == nullptr) return own->allocate(bytes);
    if (bytes == 0) return {nullptr, nullptr, &release, at::kCPU};
    const auto start = std::chrono::steady_clock::now();
    void* const address = pool->allocate(static_cast<Bytes>(bytes));
    self.count(start);
    if (address == nullptr) throw std::bad_alloc();
    return {address, address, &release, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }

 private:
  void count(std::chrono::steady_clock::time_point start) {
    time += std::chrono::steady_clock::now() - start;
    ++calls;
  }
  static void release(void* address);
};

PoolAllocator& allocator() {
  static auto* const all = new PoolAllocator;  // blocks outlive main
  return *all;
}

void PoolAllocator::release(void* address) {
  if (address == nullptr) return;
  PoolAllocator& self = allocator();
  const auto start = std::chrono::steady_clock::now();
  const bool ours = self.pool != nullptr && self.pool->free(address);
  self.count(start);
  if (!ours) std::abort();
}

struct ConvNetImpl : torch::nn::Module {
  ConvNetImpl()
      : layers(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 32, 3).padding(1)), torch::nn::ReLU(),
               torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 64, 3).padding(1)), torch::nn::ReLU(),
               torch::nn::MaxPool2d(2),
               torch::nn::Conv2d(torch::nn::Conv2dOptions(64, 128, 3).padding(1)),
               torch::nn::ReLU(), torch::nn::MaxPool2d(2), torch::nn::Flatten(),
               torch::nn::Linear(128 * 8 * 8, 10)) {
    register_module("layers", layers);
  }
  torch::Tensor forward(const torch::Tensor& x) { return layers->forward(x); }
  torch::nn::Sequential layers;
};
TORCH_MODULE(ConvNet);

struct TextNetImpl : torch::nn::Module {
  TextNetImpl()
      : embedding(256, 96),
        encoder(torch::nn::TransformerEncoder(
            torch::nn::TransformerEncoderLayer(
                torch::nn::TransformerEncoderLayerOptions(96, 4).dim_feedforward(384).dropout(0.1)),
            3)),
        head(96, 256) {
    register_module("embedding", embedding);
    register_module("encoder", encoder);
    register_module("head", head);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return head(encoder(embedding(x))).reshape({-1, 256});
  }
  torch::nn::Embedding embedding;
  torch::nn::TransformerEncoder encoder;
  torch::nn::Linear head;
};
TORCH_MODULE(TextNet);

struct Trained {
  std::vector<float> losses;
  FixedPoolReport before, after;  ///< of the first third of the iterations, and the last
};

template <class Net, class Batch>
Trained train(FixedPool* pool, int iterations, const Batch& batch) {
  torch::manual_seed(1);
  Trained result;
  {
    Net net;
    torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
    for (int i = 0; i < iterations; ++i) {
      if (pool != nullptr && i == 2 * iterations / 3) {
        result.before = pool->report();
        pool->reset_peaks();
        allocator().calls = 0;
        allocator().time = {};
      }
      const auto [x, y] = batch();
      sgd.zero_grad();
      auto loss = torch::nn::functional::cross_entropy(net->forward(x), y);
      loss.backward();
      sgd.step();
      result.losses.push_back(loss.template item<float>());
    }
    if (pool != nullptr) result.after = pool->report();
  }
  return result;
}

template <class Net, class Batch>
bool compare(const char* name, int iterations, const Batch& batch) {
  const Trained own = train<Net>(nullptr, iterations, batch);
  // Blocks of libtorch's own caches outlive the training: the pool does too.
  auto* const pool = new FixedPool({.budget = Bytes{8} << 30});
  allocator().pool = pool;
  c10::SetCPUAllocator(&allocator(), 1);
  const Trained ours = train<Net>(pool, iterations, batch);
  const auto ratio = [](const FixedPoolReport& r) {
    return static_cast<double>(r.footprint) / static_cast<double>(r.peak_load);
  };
  const bool equal = own.losses == ours.losses;
  const FixedPoolReport& r = ours.after;
  fmt::print(
      "| {} | {} | {:.1f} MiB | {:.4f} | {:.4f} | {:.4f} | {} of {} | {} | {:.0f} ns | {} |\n",
      name, r.iteration_mallocs, static_cast<double>(r.peak_load) / 1048576, ratio(ours.before),
      ratio(r),
      static_cast<double>(r.planned_bytes) /
          static_cast<double>(std::max<Bytes>(r.planned_load, 1)),
      r.iterations - ours.before.iterations, iterations - 2 * iterations / 3,
      r.left_plans - ours.before.left_plans,
      static_cast<double>(allocator().time.count()) / static_cast<double>(allocator().calls),
      equal ? "identical" : "DIFFERENT");
  return equal;
}

}  // namespace

int main(int argc, char** argv) {
  const int iterations = argc > 1 ? std::atoi(argv[1]) : 24;
  torch::set_num_threads(1);
  allocator().own = c10::GetCPUAllocator();
  fmt::print(
      "| model | mallocs an iteration | peak load | footprint / peak load, before | after | "
      "packing / "
      "its bound | planned iterations | plans left | a call, with its clock | losses |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n");
  bool equal = compare<ConvNet>("CNN, batch 32", iterations, [] {
    return std::pair(torch::randn({32, 3, 32, 32}), torch::randint(10, {32}));
  });
  equal &= compare<TextNet>("transformer, 64 x 16 tokens", iterations, [] {
    const auto x = torch::randint(256, {64, 16});
    return std::pair(x, x.reshape({-1}));
  });
  return equal ? 0 : 1;
}
