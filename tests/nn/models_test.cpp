#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "nn/training_fixture.h"

namespace tidepool::nn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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
  EXPECT_THAT(find_model("vgg-16").error().message, HasSubstr("did you mean vgg16"));
}

}  // namespace
}  // namespace tidepool::nn
