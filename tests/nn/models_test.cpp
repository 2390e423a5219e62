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
      if (model.clusters && storage == Storage::separate) continue;
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

struct KnownSize {
  const char* name;
  std::int64_t parameters;
  std::int64_t classes;
};

// Those with 1000 classes are what torchvision's models of these names have (InceptionV3 less its
// auxiliary classifier, 27 161 264 - 3 326 696), MobileNet what Keras' has in trainable ones; a
// stem for small images has other strides and, but for ResNet's, the same weights. plain20: 9 *
// (3*64 + 6*64*64 + 64*128 + 6*128*128 + 128*256 + 5*256*256) = 4 425 408 weights, 2 * (7*64 +
// 7*128 + 6*256) = 5 760 of batch norm and 2 570 of the last layer.
// VGG-101 by the same sums as VGG-16: 59 561 024 in convolutions, 123 642 856 in the rest. Plain
// VGG-16: 14 710 464 weights and 4 224 biases in convolutions, 262 656 and 5 130 in the rest.
// FCN-32s: VGG-16's convolutions (14 714 688), 7*7*512*4096 + 4096, 4096*4096 + 4096, 4096*21 + 21
// and 21*21*64*64. U-Net: 18 843 200 on the way down, 12 188 480 up, 130 in the scores.
TEST(Models, HaveTheKnownNumbersOfParameters) {
  for (const KnownSize& known :
       {KnownSize{"mobilenet", 4'231'976, 1000}, KnownSize{"squeezenet", 1'235'496, 1000},
        KnownSize{"inceptionv3", 23'834'568, 1000}, KnownSize{"resnet18", 11'689'512, 1000},
        KnownSize{"resnet34", 21'797'672, 1000}, KnownSize{"resnet50", 25'557'032, 1000},
        KnownSize{"resnet101", 44'549'160, 1000}, KnownSize{"resnet152", 60'192'808, 1000},
        KnownSize{"resnet18-home", 11'173'962, 10}, KnownSize{"plain20", 4'433'738, 10},
        KnownSize{"vgg16-imagenet", 138'357'544, 1000},
        KnownSize{"vgg19-imagenet", 143'667'240, 1000},
        KnownSize{"vgg101-imagenet", 183'203'880, 1000}, KnownSize{"vgg16-plain", 14'982'474, 10},
        KnownSize{"fcn32s", 136'152'917, 21}, KnownSize{"unet", 31'031'810, 2}}) {
    for (const KernelList* kernels : {&reference_kernels(), &blocked_reference_kernels()}) {
      const auto program = build(build_model(known.name, {.image = {}, .classes = known.classes}),
                                 {.batch = 1}, *kernels);
      EXPECT_EQ(program.learnable_elements(), known.parameters) << known.name;
    }
  }
}

/// The value's size, as people write it.
std::string size_after(const Result<Graph>& graph, const std::string& layer) {
  EXPECT_TRUE(graph) << graph.error().message;
  for (const Value& value : graph->values) {
    if (value.name == layer + ".out") return to_string(value.type);
  }
  return "no such layer";
}

TEST(Models, MapsHaveThePublishedSizes) {
  const auto resnet = build_model("resnet50");
  EXPECT_EQ(size_after(resnet, "stem_relu"), "64x112x112");
  EXPECT_EQ(size_after(resnet, "stem_pool"), "64x56x56");
  EXPECT_EQ(size_after(resnet, "block1_1.relu"), "256x56x56");
  EXPECT_EQ(size_after(resnet, "block2_1.conv1"), "128x56x56") << "the stride is in the 3x3";
  EXPECT_EQ(size_after(resnet, "block4_3.relu"), "2048x7x7");
  const auto home = build_model("resnet18-home");
  EXPECT_EQ(size_after(home, "stem_relu"), "64x32x32");
  EXPECT_EQ(size_after(home, "block4_2.relu"), "512x4x4");
  const auto inception = build_model("inceptionv3");
  EXPECT_EQ(size_after(inception, "pool2"), "192x35x35");
  EXPECT_EQ(size_after(inception, "block1a.concat"), "256x35x35");
  EXPECT_EQ(size_after(inception, "block3a.concat"), "288x35x35");
  EXPECT_EQ(size_after(inception, "block4b.concat"), "768x17x17");
  EXPECT_EQ(size_after(inception, "block8c.concat"), "768x17x17");
  EXPECT_EQ(size_after(inception, "block9d.concat"), "1280x8x8");
  EXPECT_EQ(size_after(inception, "block11e.concat"), "2048x8x8");
  const auto mobilenet = build_model("mobilenet");
  EXPECT_EQ(size_after(mobilenet, "pointwise1_relu"), "64x32x32");
  EXPECT_EQ(size_after(mobilenet, "pointwise13_relu"), "1024x2x2");
  const auto plain = build_model("plain20");
  EXPECT_EQ(size_after(plain, "relu7"), "64x32x32");
  EXPECT_EQ(size_after(plain, "relu14"), "128x16x16");
  EXPECT_EQ(size_after(plain, "relu20"), "256x8x8");
  const auto squeezenet = build_model("squeezenet");
  EXPECT_EQ(size_after(squeezenet, "conv1"), "64x32x32");
  EXPECT_EQ(size_after(squeezenet, "fire2.concat"), "128x16x16");
  EXPECT_EQ(size_after(squeezenet, "fire9.concat"), "512x4x4");
  EXPECT_EQ(size_after(squeezenet, "conv10"), "10x4x4");
}

TEST(Models, ModelsOfMoDnnHaveThePublishedShapes) {
  for (const auto& [name, convolutions] :
       {std::pair{"vgg16-imagenet", 13}, std::pair{"vgg19-imagenet", 16},
        std::pair{"vgg101-imagenet", 98}}) {
    const auto vgg = build_model(name);
    ASSERT_TRUE(vgg) << vgg.error().message;
    int found = 0, linear = 0;
    for (const Layer& layer : vgg->layers) {
      found += std::holds_alternative<Conv2d>(layer.spec);
      linear += std::holds_alternative<Linear>(layer.spec);
      EXPECT_FALSE(traits_of(layer.spec).batch_statistics) << name << ' ' << layer.name;
    }
    EXPECT_EQ(found, convolutions) << name;
    EXPECT_EQ(linear, 3) << name;
    EXPECT_EQ(size_after(vgg, "relu1_2"), "64x224x224");
    EXPECT_EQ(size_after(vgg, "pool5"), "512x7x7");
  }
  const auto fcn = build_model("fcn32s");
  EXPECT_EQ(size_after(fcn, "relu_fc6"), "4096x7x7");
  EXPECT_EQ(size_after(fcn, "score"), "21x7x7");
  EXPECT_EQ(size_after(fcn, "upscore"), "21x224x224");
  EXPECT_EQ(fcn->answers, 224 * 224);
  const auto unet = build_model("unet", {.image = {1, 64, 48}});
  EXPECT_EQ(size_after(unet, "bottom.relu2"), "1024x4x3");
  EXPECT_EQ(size_after(unet, "up4.concat"), "1024x8x6");
  EXPECT_EQ(size_after(unet, "up1.relu2"), "64x64x48");
  EXPECT_EQ(size_after(unet, "score"), "2x64x48");
}

TEST(Models, OfPixelsNeedImagesThatTheirPoolsDivide) {
  const auto fcn = build_model("fcn32s", {.image = {3, 224, 200}});
  ASSERT_FALSE(fcn);
  EXPECT_THAT(fcn.error().message,
              AllOf(HasSubstr("layer 'loss'"), HasSubstr("224x192 pixels"), HasSubstr("224x200")));
  const auto unet = build_model("unet", {.image = {3, 40, 32}});
  ASSERT_FALSE(unet);
  EXPECT_THAT(unet.error().message, HasSubstr("up4.concat"));
}

TEST(Models, TakeOtherImagesWhereTheArithmeticAllowsIt) {
  for (const char* name : {"mobilenet", "plain20", "squeezenet", "resnet18-home", "resnet18",
                           "resnet152", "tiny-mobilenet", "tiny-squeezenet"}) {
    for (const ImageShape& image :
         {ImageShape{3, 8, 8}, ImageShape{1, 28, 28}, ImageShape{3, 1, 2}, ImageShape{3, 64, 48}}) {
      EXPECT_TRUE(build_model(name, {.image = image, .classes = 3})) << name;
    }
  }
  EXPECT_TRUE(build_model("inceptionv3", {.image = {3, 75, 75}}));
  const auto small = build_model("inceptionv3", {.image = {3, 74, 299}});
  ASSERT_FALSE(small);
  EXPECT_THAT(small.error().message,
              AllOf(HasSubstr("layer 'block9d"), HasSubstr("a window of 3 does not fit into 2")));
  EXPECT_TRUE(build_model("tiny-inception", {.image = {3, 7, 7}}));
  EXPECT_FALSE(build_model("tiny-inception", {.image = {3, 6, 6}}));
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
