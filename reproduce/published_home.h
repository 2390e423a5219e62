// Figures of He, Chen, Chen, Li, Yang, Chen and Shou, "HOME: A Holistic GPU Memory Management
// Framework for Deep Learning" (IEEE Transactions on Computers, 2023): tables 2 and 3 and what the
// text of sections 4.3 to 4.6 says of single models; the rest of it is in home_notes.cpp. RTX 2080
// Ti, CIFAR-10, PyTorch 1.5.1.
#pragma once

#include <span>
#include <string_view>

namespace tidepool::reproduce {

struct PublishedFit {
  double max_batch = 0;
  double samples_per_s = 0;
};

/// Iterations until the swarm is close to its end: mean of the models that have no figure.
inline constexpr int kPublishedMeanIterations = 42;

struct PublishedHome {
  std::string_view model;  ///< its name in the zoo
  PublishedFit pytorch;
  PublishedFit capuchin;
  PublishedFit home;
  double search_s = 0;     ///< 500 iterations of 500 particles
  double evaluate_ms = 0;  ///< of the evaluator, "in one iteration"
  /// Until the swarm is close to its end (section 4.5); "other models" have an average.
  int iterations = 0;
};

inline constexpr PublishedHome kPublishedHome[] = {
    {"mobilenet", {2012, 1706}, {3954, 2999}, {4200, 3426}, 28, 1.7, kPublishedMeanIterations},
    {"plain20", {1040, 2368}, {2843, 2012}, {2926, 2554}, 41, 2.2, kPublishedMeanIterations},
    {"squeezenet", {1667, 6273}, {4056, 5719}, {4347, 6613}, 9, 0.5, 30},
    {"vgg16", {2759, 2786}, {4250, 5120}, {5125, 6211}, 25, 1.4, kPublishedMeanIterations},
    {"resnet18-home", {1255, 2285}, {2014, 2179}, {2576, 2519}, 10, 0.6, 16},
    {"inceptionv3", {125, 257}, {345, 240}, {365, 280}, 350, 21.8, 89},
};

/// Shares of an iteration (section 4.3). Below 0: not published.
struct PublishedBreakdown {
  std::string_view model;
  long batch = 0;
  std::string_view system;
  double overlap = -1;
  double stall = -1;
  double recompute = -1;
};

inline constexpr PublishedBreakdown kPublishedBreakdowns[] = {
    {"vgg16", 3950, "home", 0.57, 0, -1},
    {"vgg16", 3950, "vdnn", -1, 0.75, -1},
    {"vgg16", 3950, "superneurons", -1, 0.09, 0.205},
    {"vgg16", 3950, "capuchin", -1, -1, -1},
    {"inceptionv3", 170, "home", -1, 0.01, -1},
    {"inceptionv3", 170, "capuchin", -1, 0.05, -1},
    {"inceptionv3", 170, "vdnn", -1, 0.34, -1},
};

/// Mean error of the evaluator's prediction (section 4.6).
inline constexpr double kPublishedPredictionError = 0.005;

}  // namespace tidepool::reproduce
