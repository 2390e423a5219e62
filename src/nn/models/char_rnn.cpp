#include "nn/models/char_rnn.h"

#include <fmt/format.h>

namespace tidepool::nn {
namespace {

constexpr std::int64_t kCharacters = 256;

Result<Graph> build_char_rnn(const ModelInfo& info, const ModelOptions& options, int layers,
                             std::int64_t width) {
  GraphBuilder b(info.name);
  const ValueId tokens = b.tokens(options.sequence);
  const ValueId labels = b.token_labels(options.sequence);
  ValueId x = b.add("embedding", Embedding{options.classes, width, options.sequence}, {tokens});
  for (int i = 1; i <= layers; ++i) x = b.add(fmt::format("lstm{}", i), Lstm{width}, {x});
  x = b.add("output", Linear{options.classes, Initialiser::small_normal}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

Result<Graph> build_char_lstm(const ModelInfo& info, const ModelOptions& options) {
  return build_char_rnn(info, options, 3, 512);
}
Result<Graph> build_tiny_lstm(const ModelInfo& info, const ModelOptions& options) {
  return build_char_rnn(info, options, 3, 16);
}

}  // namespace

std::vector<ModelInfo> char_rnn_models() {
  return {{"char-lstm",
           "three layers of LSTM of width 512, trained on the next character",
           {},
           kCharacters,
           build_char_lstm,
           100,
           false},
          {"tiny-lstm",
           "three layers of LSTM of width 16, for trials",
           {},
           kCharacters,
           build_tiny_lstm,
           8,
           false}};
}

}  // namespace tidepool::nn
