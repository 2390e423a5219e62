#include "nn/models/transformer.h"

#include <algorithm>
#include <string>

#include "nn/data/token_samples.h"

namespace tidepool::nn {
namespace {

struct Size {
  int layers = 0;
  std::int64_t width = 0;
  std::int64_t heads = 0;
  std::int64_t hidden = 0;
  std::int64_t positions = 0;
  float epsilon = 1e-5F;  ///< of layer norms
};

constexpr float kDropout = 0.1F;
constexpr const char* kEmbedding = "embedding";

/// The layers of one model.
class Transformer {
 public:
  Transformer(GraphBuilder& builder, const Size& size, bool causal)
      : b_(builder), size_(size), causal_(causal) {}

  ValueId embed(const ModelOptions& options) {
    const ValueId tokens = b_.tokens(options.sequence);
    return b_.add(
        kEmbedding,
        Embedding{options.classes, size_.width, std::max(size_.positions, options.sequence)},
        {tokens});
  }
  ValueId norm(const std::string& name, ValueId x) {
    return b_.add(name, LayerNorm{size_.epsilon}, {x});
  }
  ValueId linear(const std::string& name, std::int64_t features, ValueId x) {
    return b_.add(name, Linear{features, Initialiser::small_normal}, {x});
  }
  ValueId drop(const std::string& name, ValueId x) { return b_.add(name, Dropout{kDropout}, {x}); }

  /// The branch of attention, back in the width of the sum. `prefix` ends in a dot.
  ValueId attend(const std::string& prefix, ValueId x) {
    const ValueId q = linear(prefix + "query", size_.width, x);
    const ValueId k = linear(prefix + "key", size_.width, x);
    const ValueId v = linear(prefix + "value", size_.width, x);
    x = b_.add(prefix + "attention", Attention{size_.heads, causal_}, {q, k, v});
    return drop(prefix + "attention_drop", linear(prefix + "attention_out", size_.width, x));
  }
  ValueId feed_forward(const std::string& prefix, ValueId x) {
    x = linear(prefix + "fc1", size_.hidden, x);
    x = b_.add(prefix + "gelu", Gelu{}, {x});
    return drop(prefix + "fc_drop", linear(prefix + "fc2", size_.width, x));
  }
  ValueId add(const std::string& name, ValueId x, ValueId branch) {
    return b_.add(name, Add{}, {branch, x});
  }

 private:
  GraphBuilder& b_;
  Size size_;
  bool causal_;
};

std::string prefix_of(int layer) { return "layer" + std::to_string(layer) + "."; }

/// Layer norm behind each sum, and a head that finds masked tokens.
Result<Graph> build_encoder(const ModelInfo& info, const ModelOptions& options, const Size& size) {
  GraphBuilder b(info.name);
  Transformer t(b, size, false);
  ValueId x = t.embed(options);
  const ValueId labels = b.token_labels(options.sequence);
  x = t.drop("embedding_drop", t.norm("embedding_norm", x));
  for (int i = 1; i <= size.layers; ++i) {
    const std::string prefix = prefix_of(i);
    x = t.norm(prefix + "norm1", t.add(prefix + "add1", x, t.attend(prefix, x)));
    x = t.norm(prefix + "norm2", t.add(prefix + "add2", x, t.feed_forward(prefix, x)));
  }
  x = t.linear("head", size.width, x);
  x = b.add("head_gelu", Gelu{}, {x});
  x = t.norm("head_norm", x);
  x = b.add("output", TiedLinear{kEmbedding, options.classes, true}, {x});
  const SoftmaxCrossEntropy loss{masked_tokens(options.sequence)};
  return b.finish(b.add("loss", loss, {x, labels}));
}

/// Layer norm at the start of each branch and behind the last sum.
Result<Graph> build_decoder(const ModelInfo& info, const ModelOptions& options, const Size& size) {
  GraphBuilder b(info.name);
  Transformer t(b, size, true);
  ValueId x = t.embed(options);
  const ValueId labels = b.token_labels(options.sequence);
  x = t.drop("embedding_drop", x);
  for (int i = 1; i <= size.layers; ++i) {
    const std::string prefix = prefix_of(i);
    x = t.add(prefix + "add1", x, t.attend(prefix, t.norm(prefix + "norm1", x)));
    x = t.add(prefix + "add2", x, t.feed_forward(prefix, t.norm(prefix + "norm2", x)));
  }
  x = t.norm("final_norm", x);
  x = b.add("output", TiedLinear{kEmbedding, options.classes, false}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

constexpr float kBertEpsilon = 1e-12F;
constexpr std::int64_t kBytes = 256;

Result<Graph> build_bert_base(const ModelInfo& info, const ModelOptions& options) {
  return build_encoder(info, options, {12, 768, 12, 3072, 512, kBertEpsilon});
}
Result<Graph> build_gpt2_small(const ModelInfo& info, const ModelOptions& options) {
  return build_decoder(info, options, {12, 768, 12, 3072, 1024});
}
Result<Graph> build_small(const ModelInfo& info, const ModelOptions& options) {
  return build_encoder(info, options, {4, 256, 4, 1024, 64});
}
Result<Graph> build_tiny_encoder(const ModelInfo& info, const ModelOptions& options) {
  return build_encoder(info, options, {2, 16, 2, 32, 8});
}
Result<Graph> build_tiny_decoder(const ModelInfo& info, const ModelOptions& options) {
  return build_decoder(info, options, {2, 16, 2, 32, 8});
}

}  // namespace

std::vector<ModelInfo> transformer_models() {
  return {
      {"bert-base",
       "BERT-base, an encoder trained on masked tokens",
       {},
       30522,
       build_bert_base,
       128,
       true},
      {"gpt2-small",
       "GPT-2 small, a decoder trained on the next token",
       {},
       50257,
       build_gpt2_small,
       1024,
       false},
      {"transformer",
       "an encoder of 4 layers of width 256, for bytes",
       {},
       kBytes,
       build_small,
       64,
       true},
      {"tiny-transformer",
       "an encoder of two layers of width 16, for trials",
       {},
       kBytes,
       build_tiny_encoder,
       8,
       true},
      {"tiny-gpt",
       "a decoder of two layers of width 16, for trials",
       {},
       kBytes,
       build_tiny_decoder,
       8,
       false},
  };
}

}  // namespace tidepool::nn
