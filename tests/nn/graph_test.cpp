#include "nn/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidepool::nn {
namespace {

using ::testing::HasSubstr;

ValueType image(std::int64_t c, std::int64_t h, std::int64_t w) {
  return {{c, h, w}, ElementType::f32};
}

TEST(InferType, FollowsTheUsualRules) {
  EXPECT_EQ(
      infer_type(Conv2d{.channels = 8, .window = 3, .stride = 2, .padding = 1}, {image(3, 32, 17)}),
      image(8, 16, 9));
  EXPECT_EQ(infer_type(MaxPool{}, {image(5, 7, 8)}), image(5, 3, 4));
  EXPECT_EQ(infer_type(AvgPool{8, 8}, {image(5, 8, 16)}), image(5, 1, 2));
  EXPECT_EQ(
      infer_type(Conv2d{.channels = 8, .window = {1, 7}, .padding = {0, 3}}, {image(3, 5, 9)}),
      image(8, 5, 9));
  EXPECT_EQ(infer_type(Conv2d{.channels = 9, .window = {3, 1}, .padding = 0, .groups = 3},
                       {image(6, 5, 9)}),
            image(9, 3, 9));
  EXPECT_EQ(infer_type(AvgPool{.window = 3, .stride = 1, .padding = 1}, {image(5, 7, 8)}),
            image(5, 7, 8));
  EXPECT_EQ(infer_type(GlobalAvgPool{}, {image(5, 7, 8)}), image(5, 1, 1));
  EXPECT_EQ(infer_type(Concat{}, {image(5, 7, 8), image(2, 7, 8), image(1, 7, 8)}), image(8, 7, 8));
  EXPECT_EQ(infer_type(ConvTranspose2d{.channels = 6}, {image(3, 5, 9)}), image(6, 10, 18));
  EXPECT_EQ(infer_type(
                ConvTranspose2d{.channels = 2, .window = {64, 3}, .stride = 32, .padding = {16, 0}},
                {image(3, 7, 1)}),
            image(2, 224, 3));
  EXPECT_EQ(infer_type(Upsample{3}, {image(5, 7, 8)}), image(5, 21, 24));
  EXPECT_EQ(
      infer_type(SoftmaxCrossEntropy{}, {image(5, 7, 8), ValueType{{7, 8}, ElementType::i32}}),
      ValueType{});
  EXPECT_EQ(infer_type(Add{}, {image(5, 7, 8), image(5, 7, 8)}), image(5, 7, 8));
  EXPECT_EQ(infer_type(Flatten{}, {image(5, 3, 4)}), (ValueType{{60}, ElementType::f32}));
  EXPECT_EQ(infer_type(Linear{10}, {ValueType{{60}}}), ValueType{{10}});
  EXPECT_EQ(infer_type(BatchNorm{}, {image(5, 7, 8)}), image(5, 7, 8));
  EXPECT_EQ(infer_type(SoftmaxCrossEntropy{}, {ValueType{{10}}, ValueType{{}, ElementType::i32}}),
            ValueType{});
}

struct BadShape {
  LayerSpec spec;
  std::vector<ValueType> inputs;
  std::string message;
};

TEST(InferType, SaysWhyInputsDoNotFit) {
  const ValueType labels{{}, ElementType::i32};
  const std::vector<BadShape> cases = {
      {Conv2d{.channels = 8}, {ValueType{{60}}}, "channels x height x width, not 60"},
      {Conv2d{.channels = 8}, {}, "takes 1 input, not 0"},
      {Conv2d{.channels = 0}, {image(3, 8, 8)}, "size 0x8x8"},
      {Conv2d{.channels = 8, .stride = 0}, {image(3, 8, 8)}, "stride 0"},
      {Conv2d{.channels = 8, .groups = 0}, {image(3, 8, 8)}, "cannot make 0 groups"},
      {Conv2d{.channels = 8, .groups = 4},
       {image(6, 8, 8)},
       "cannot make 4 groups of 6 channels for 8 filters"},
      {Conv2d{.channels = 6, .groups = 4}, {image(8, 8, 8)}, "for 6 filters"},
      {Conv2d{.channels = 8, .window = {1, 7}, .padding = 0},
       {image(3, 8, 6)},
       "a window of 7 does not fit into 6 elements"},
      {GlobalAvgPool{}, {ValueType{{60}}}, "channels x height x width, not 60"},
      {Concat{}, {image(5, 8, 8)}, "takes two inputs or more, not 1"},
      {Concat{}, {image(5, 8, 8), image(5, 8, 9)}, "one size, not 5x8x8 and 5x8x9"},
      {Concat{}, {image(5, 8, 8), ValueType{{60}}}, "channels x height x width, not 60"},
      {ConvTranspose2d{.channels = 8, .padding = 2}, {image(3, 8, 8)}, "padding 2"},
      {ConvTranspose2d{.channels = 8, .window = 3, .padding = 2}, {image(3, 1, 1)}, "size 8x-1x-1"},
      {ConvTranspose2d{.channels = 8}, {ValueType{{60}}}, "channels x height x width, not 60"},
      {Upsample{0}, {image(3, 8, 8)}, "a factor from 1 to 1024, not 0"},
      {SoftmaxCrossEntropy{},
       {image(5, 7, 8), labels},
       "logits for 7x8 pixels and needs labels of"},
      {MaxPool{}, {image(512, 1, 1)}, "a window of 2 does not fit into 1 elements"},
      {MaxPool{.padding = 2}, {image(5, 8, 8)}, "padding 2"},
      {MaxPool{.window = 20}, {image(5, 32, 32)}, "does not fit into a byte"},
      {AvgPool{8, 8}, {image(5, 4, 8)}, "a window of 8 does not fit into 4 elements"},
      {AvgPool{2, 0}, {image(5, 4, 8)}, "stride 0"},
      {Add{}, {image(5, 8, 8)}, "takes 2 inputs, not 1"},
      {Add{}, {image(5, 8, 8), image(5, 8, 9)}, "one shape, not 5x8x8 and 5x8x9"},
      {Add{}, {labels, labels}, "a value of floats"},
      {Linear{10}, {image(5, 3, 4)}, "flatten the value first"},
      {Linear{-1}, {ValueType{{4}}}, "size -1"},
      {Dropout{1.0F}, {ValueType{{4}}}, "a rate in [0, 1)"},
      {Relu{}, {labels}, "a value of floats"},
      {SoftmaxCrossEntropy{}, {ValueType{{10}}}, "takes 2 inputs, not 1"},
      {SoftmaxCrossEntropy{}, {ValueType{{10}}, ValueType{{10}}}, "the labels"},
      {Input{{{3, 1 << 20, 1 << 20}}}, {}, "too large"},
      {SoftmaxCrossEntropy{}, {ValueType{{8, 10}}, labels}, "the labels"},
      {SoftmaxCrossEntropy{9}, {ValueType{{8, 10}}, {{8}, ElementType::i32}}, "9 of 8 labels"},
      {Embedding{10, 4, 8}, {ValueType{{8}}}, "a sequence of tokens, not 8"},
      {Embedding{10, 4, 7}, {ValueType{{8}, ElementType::i32}}, "7 positions for a sequence of 8"},
      {LayerNorm{}, {image(5, 8, 8)}, "a sequence of vectors, not 5x8x8"},
      {LayerNorm{0}, {ValueType{{4}}}, "a positive epsilon"},
      {Attention{2}, {ValueType{{8, 4}}}, "takes 3 inputs, not 1"},
      {Attention{3}, std::vector(3, ValueType{{8, 4}}), "a width of 4 into 3 heads"},
      {Attention{}, {ValueType{{8, 4}}, ValueType{{8, 4}}, ValueType{{7, 4}}}, "8x4 and 7x4"},
  };
  for (const BadShape& c : cases) {
    const auto type = infer_type(c.spec, c.inputs);
    ASSERT_FALSE(type) << c.message;
    EXPECT_EQ(type.error().code, ErrorCode::usage);
    EXPECT_THAT(type.error().message, HasSubstr(c.message));
  }
}

TEST(GraphBuilder, TiesWeightsToEmbeddingsOnly) {
  const auto message = [](const TiedLinear& tied) {
    GraphBuilder b("net");
    const ValueId labels = b.token_labels(8);
    const ValueId x = b.add("words", Embedding{10, 4, 8}, {b.tokens(8)});
    const ValueId y = b.add("out", tied, {b.add("norm", LayerNorm{}, {x})});
    const auto graph = b.finish(b.add("loss", SoftmaxCrossEntropy{}, {y, labels}));
    return graph ? std::string() : graph.error().message;
  };
  EXPECT_EQ(message({"words", 10, false}), "");
  EXPECT_THAT(message({"word", 10, false}), HasSubstr("weight of 'word', which is no embedding"));
  EXPECT_THAT(message({"norm", 10, false}), HasSubstr("no embedding before it"));
  EXPECT_THAT(message({"words", 11, false}), HasSubstr("makes 11 numbers of 4"));
}

TEST(GraphBuilder, RecordsProducersAndConsumers) {
  GraphBuilder b("net");
  const ValueId images = b.images({1, 4, 4});
  const ValueId labels = b.labels();
  const ValueId flat = b.add("flat", Flatten{}, {images});
  const ValueId logits = b.add("fc", Linear{3}, {flat});
  const auto graph = b.finish(b.add("loss", SoftmaxCrossEntropy{}, {logits, labels}));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->classes, 3);
  EXPECT_EQ(graph->image, (ImageShape{1, 4, 4}));
  EXPECT_EQ(graph->values[flat].name, "flat.out");
  EXPECT_EQ(graph->layers[graph->values[flat].producer].name, "flat");
  ASSERT_EQ(graph->values[flat].consumers.size(), 1U);
  EXPECT_EQ(graph->layers[graph->values[flat].consumers[0]].name, "fc");
}

TEST(GraphBuilder, KeepsTheFirstError) {
  GraphBuilder b("net");
  const ValueId images = b.images({1, 4, 4});
  const ValueId labels = b.labels();
  ValueId x = b.add("fc", Linear{3}, {images});
  x = b.add("relu", Relu{}, {x});
  const auto graph = b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, ErrorCode::usage);
  EXPECT_THAT(graph.error().message, HasSubstr("net: layer 'fc' needs a vector"));
}

TEST(GraphBuilder, RefusesIncompleteGraphs) {
  {
    GraphBuilder b("net");
    const ValueId images = b.images({1, 4, 4});
    b.labels();
    EXPECT_THAT(b.finish(images).error().message, HasSubstr("must be a loss"));
  }
  {
    GraphBuilder b("net");
    EXPECT_THAT(b.finish(b.images({1, 4, 4})).error().message, HasSubstr("must be a loss"));
  }
  {
    GraphBuilder b("net");
    const ValueId flat = b.add("flat", Flatten{}, {b.images({1, 4, 4})});
    b.add("forgotten", Relu{}, {flat});
    const ValueId loss = b.add("loss", SoftmaxCrossEntropy{}, {flat, b.labels()});
    EXPECT_THAT(b.finish(loss).error().message, HasSubstr("'forgotten.out' must be used"));
  }
  {
    GraphBuilder b("net");
    const ValueId flat = b.add("flat", Flatten{}, {b.images({1, 4, 4})});
    EXPECT_EQ(b.add("flat", Relu{}, {flat}), -1);
    EXPECT_THAT(b.finish(flat).error().message, HasSubstr("a name of its own"));
  }
}

}  // namespace
}  // namespace tidepool::nn
