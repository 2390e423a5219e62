#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "nn/training_fixture.h"

namespace tidepool::nn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Models, AllBuildInBothStoragesAndLayouts) {
  std::set<std::string> names;
  for (const ModelInfo& model : models()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    for (const Storage storage : {Storage::separate, Storage::in_place}) {
      for (const KernelList* kernels : {&reference_kernels(), &blocked_reference_kernels()}) {
        const auto program =
            build(build_model(model.name), {.batch = 2, .storage = storage}, *kernels);
        EXPECT_TRUE(validate(program.program)) << model.name;
        EXPECT_EQ(program.classes, model.classes);
      }
    }
  }
}

// Convolutions, 9 * (3*64 + 64*64 + 64*128 + 128*128 + 128*256 + 2*256*256 + 256*512 + 5*512*512)
//                                                                              = 14 710 464
// their batch norms, 2 * (2*64 + 2*128 + 3*256 + 6*512)                        =      8 448
// 512 -> 512 with bias and batch norm, 512*512 + 512 + 2*512                   =    263 680
// 512 -> 10 with bias                                                          =      5 130
TEST(Models, Vgg16HasTheKnownNumberOfParameters) {
  for (const KernelList* kernels : {&reference_kernels(), &blocked_reference_kernels()}) {
    const auto program = build(build_model("vgg16"), {.batch = 1}, *kernels);
    EXPECT_EQ(program.learnable_elements(), 14'987'722);
  }
}

struct Depth {
  const char* name;
  int convolutions;
  int dropouts;
};

TEST(Models, VggDepthsAndDropouts) {
  for (const Depth& depth : {Depth{"vgg11", 8, 3 + 2}, Depth{"vgg13", 10, 5 + 2},
                             Depth{"vgg16", 13, 8 + 2}, Depth{"vgg19", 16, 11 + 2}}) {
    const auto graph = build_model(depth.name);
    ASSERT_TRUE(graph);
    int convolutions = 0;
    int dropouts = 0;
    for (const Layer& layer : graph->layers) {
      convolutions += std::holds_alternative<Conv2d>(layer.spec);
      dropouts += std::holds_alternative<Dropout>(layer.spec);
      if (layer.name == "drop1_1") {
        EXPECT_FLOAT_EQ(std::get<Dropout>(layer.spec).rate, 0.3F);
      }
      if (layer.name == "drop3_1") {
        EXPECT_FLOAT_EQ(std::get<Dropout>(layer.spec).rate, 0.4F);
      }
    }
    EXPECT_EQ(convolutions, depth.convolutions) << depth.name;
    EXPECT_EQ(dropouts, depth.dropouts) << depth.name;
  }
}

struct ResNetSize {
  const char* name;
  std::int64_t parameters;
  int convolutions;
  int blocks;
};

// Convolutions, batch norms, projections and the last layer by hand; the first two are also what
// the usual PyTorch implementations for CIFAR have. Three projections: between all stages.
TEST(Models, ResNetsHaveTheKnownNumbersOfParametersAndBlocks) {
  for (const ResNetSize& size : {ResNetSize{"resnet18-cifar", 11'173'962, 1 + 2 * 8 + 3, 8},
                                 ResNetSize{"resnet34-cifar", 21'282'122, 1 + 2 * 16 + 3, 16},
                                 ResNetSize{"resnet50-cifar", 32'606'922, 1 + 3 * 16 + 3, 16},
                                 ResNetSize{"resnet101-cifar", 62'714'058, 1 + 3 * 33 + 3, 33}}) {
    const auto graph = build_model(size.name);
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_EQ(build(graph, {.batch = 1}).learnable_elements(), size.parameters) << size.name;
    int convolutions = 0;
    int additions = 0;
    for (const Layer& layer : graph->layers) {
      convolutions += std::holds_alternative<Conv2d>(layer.spec);
      if (!std::holds_alternative<Add>(layer.spec)) continue;
      ++additions;
      for (const LayerId reader : graph->values[layer.output].consumers) {
        EXPECT_FALSE(std::holds_alternative<Relu>(graph->layers[reader].spec)) << layer.name;
      }
    }
    EXPECT_EQ(convolutions, size.convolutions) << size.name;
    EXPECT_EQ(additions, size.blocks) << size.name;
  }
}

TEST(Models, ResNetsReduceTheImageInTheLastTwoStages) {
  const auto graph = build_model("resnet18-cifar");
  ASSERT_TRUE(graph);
  const auto size_after = [&](const std::string& layer) {
    for (const Value& value : graph->values) {
      if (value.name == layer + ".out") return to_string(value.type);
    }
    return std::string("no such layer");
  };
  EXPECT_EQ(size_after("stem_relu"), "64x32x32");
  EXPECT_EQ(size_after("block1_2.add"), "64x32x32");
  EXPECT_EQ(size_after("block2_1.add"), "128x32x32");
  EXPECT_EQ(size_after("block3_1.conv1"), "256x16x16");
  EXPECT_EQ(size_after("block4_2.add"), "512x8x8");
  EXPECT_EQ(size_after("pool"), "512x1x1");
}

TEST(Models, OptionsChangeImageAndClasses) {
  const auto graph = build_model("vgg11", {.image = {1, 64, 48}, .classes = 7});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->image, (ImageShape{1, 64, 48}));
  EXPECT_EQ(graph->classes, 7);
  const auto small = build_model("vgg11", {.image = {3, 16, 16}});
  ASSERT_FALSE(small);
  EXPECT_THAT(small.error().message, HasSubstr("layer 'pool5'"));
}

TEST(Models, UnknownNameOffersTheNearest) {
  const auto model = find_model("vgg61");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::usage);
  EXPECT_THAT(model.error().message, AllOf(HasSubstr("'vgg61'"), HasSubstr("vgg11")));
  EXPECT_THAT(find_model("vgg-16").error().message, HasSubstr("did you mean 'vgg16'?"));
}

}  // namespace
}  // namespace tidepool::nn
