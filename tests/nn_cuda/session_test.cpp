// A Session on a GPU: ops enqueue kernels, blocks come and go over pinned host memory.
#include "session/session.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "device/cuda/cuda_device.h"
#include "device/cuda/stream.h"
#include "nn/kernels/cuda/launch.h"
#include "support/cuda.h"

namespace tidepool::nn::testing {
namespace {

constexpr int kLayers = 6;
constexpr std::int64_t kCount = 8192;
constexpr Bytes kBytes = kCount * static_cast<Bytes>(sizeof(float));

/// y = a + factor * b, layer for layer, forwards, backwards and into the weights.
class AddingTraining {
 public:
  explicit AddingTraining(Session& session) : session_(session) {
    std::vector<float> values(kCount);
    for (int i = 0; i < kLayers; ++i) {
      std::iota(values.begin(), values.end(), static_cast<float>(i));
      weights_.push_back(session_.malloc(kBytes));
      session_.upload(weights_.back(), values.data());
    }
  }

  void iteration(int layers = kLayers) {
    std::vector<float> input(kCount, 0.5F);
    std::vector<BlockHandle> x{session_.malloc(kBytes)};
    session_.upload(x[0], input.data());
    for (int i = 0; i < layers; ++i) {
      x.push_back(session_.malloc(kBytes));
      add("forward", x[x.size() - 2], weight(i), 0.5F, x.back(), BlockUse::write, true);
    }
    BlockHandle dy = session_.malloc(kBytes);
    add("loss", x.back(), x[0], -0.25F, dy, BlockUse::write, false);
    for (int i = layers - 1; i >= 0; --i) {
      const BlockHandle dx = session_.malloc(kBytes);
      add("backward", dy, x.back(), 0.125F, dx, BlockUse::write, false);
      session_.free(x.back());
      x.pop_back();
      add("step", dy, x.back(), 0.001F, weight(i), BlockUse::update, false);
      session_.free(dy);
      dy = dx;
    }
    session_.free(dy);
    session_.free(x[0]);
  }

  std::vector<float> weights() {
    std::vector<float> all;
    for (const BlockHandle w : weights_) {
      std::vector<float> values(kCount);
      session_.download(w, values.data());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  BlockHandle weight(int layer) { return weights_[static_cast<std::size_t>(layer)]; }

  void add(const char* op, BlockHandle a, BlockHandle b, float factor, BlockHandle to, BlockUse use,
           bool pure) {
    const std::vector<Session::Use> uses{{a, BlockUse::read}, {b, BlockUse::read}, {to, use}};
    session_.launch(op, uses, pure, [factor, use](auto p, NativeStream stream) {
      const auto at = [&](std::size_t i) { return reinterpret_cast<float*>(p[i]); };
      const cudaStream_t s = cuda::CudaStream::from(stream).stream();
      if (use == BlockUse::write) {
        device_code::add(at(0), at(1), factor, at(2), kCount, s);
      } else {
        device_code::add(at(2), at(0), factor, at(2), kCount, s);
        device_code::add(at(2), at(1), factor, at(2), kCount, s);
      }
    });
  }

  Session& session_;
  std::vector<BlockHandle> weights_;
};

SessionSpec cuda_spec(Bytes budget) {
  SessionSpec spec;
  spec.device = std::make_unique<CudaDevice>(CudaDeviceOptions{});
  spec.machine.name = "cuda";
  spec.machine.set_links({10e9, Nanos{2000}}, {10e9, Nanos{2000}});
  spec.budget = budget;
  spec.away_bytes = 4 * kMiB;
  spec.planner.evaluations = 100;
  return spec;
}

class SessionOnCuda : public tidepool::testing::CudaTest {};

TEST_F(SessionOnCuda, ATrainingHasTheBitsOfOneThatFits) {
  std::vector<float> expected;
  for (const Bytes budget : {4 * kMiB, 11 * kBytes, 9 * kBytes}) {
    Session session(cuda_spec(budget));
    AddingTraining training(session);
    for (int i = 0; i < 4; ++i) training.iteration();
    session.plan_now();
    for (int i = 0; i < 10; ++i) training.iteration(i == 5 ? kLayers - 1 : kLayers);
    const SessionReport report = session.report();
    EXPECT_EQ(report.why_no_plan, "");
    EXPECT_GE(report.planned_iterations, 5);
    EXPECT_EQ(report.left_plans, 1);
    EXPECT_LE(report.device_peak, budget);
    const std::vector<float> weights = training.weights();
    if (expected.empty()) expected = weights;
    EXPECT_EQ(weights, expected);
  }
}

}  // namespace
}  // namespace tidepool::nn::testing
