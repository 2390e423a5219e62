// What rounds take of memory with the CPU's kernels, of which few add to gradients by themselves.
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "nn/models/model.h"
#include "nn/training_program.h"

namespace tidepool::nn {
namespace {

Bytes least_of(const Graph& graph, std::int64_t batch, std::int64_t sub_batch) {
  TrainingOptions options;
  options.batch = batch;
  options.sub_batch = sub_batch;
  options.sub_batch_statistics = true;
  const auto program = build_training_program(graph, options, cpu_kernels(1));
  EXPECT_TRUE(program) << program.error().message;
  return smallest_budget(program->program, 64).bytes;
}

TEST(CpuRounds, NeverNeedMoreThanTheWholeBatch) {
  int compared = 0;
  for (const char* name : {"tiny-vgg", "tiny-vgg-plain", "tiny-resnet", "tiny-mobilenet",
                           "tiny-squeezenet", "tiny-inception", "tiny-fcn", "tiny-unet",
                           "tiny-transformer", "tiny-gpt", "tiny-lstm", "tiny-resnet-sd", "mlp"}) {
    const auto graph = build_model(name);
    ASSERT_TRUE(graph) << graph.error().message;
    for (const std::int64_t batch : {2, 4, 6, 7, 128, 300}) {
      const Bytes whole = least_of(*graph, batch, batch);
      for (const std::int64_t sub_batch : {batch - 1, (batch + 1) / 2, std::int64_t{1}}) {
        if (batch > 7 && sub_batch == 1) continue;  // many ops for nothing new
        EXPECT_LE(least_of(*graph, batch, sub_batch), whole)
            << name << " of " << batch << " in rounds of " << sub_batch;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 200);
}

}  // namespace
}  // namespace tidepool::nn
