// A training written by hand, with loops of its own and no library of networks, in a third of the
// memory that it takes: its blocks are a tp::Session's. Nothing describes the iteration; the
// session finds it. The weights are compared, bit for bit, with those of the same training in all
// its memory.
//
//   example_session_trainer [FOLDER]   what leaves goes to a file there; else to other memory
#include <tidepool/session.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int kWidth = 64, kLayers = 8, kClasses = 4, kBatch = 128, kBatches = 8, kEpochs = 6;
constexpr std::int64_t kActivation = sizeof(float) * kBatch * kWidth;
constexpr std::int64_t kWeight = sizeof(float) * kWidth * kWidth;
constexpr float kRate = 0.05F;

using Pointers = std::span<void* const>;
float* floats(void* p) { return static_cast<float*>(p); }

// y = max(x w, 0)
void forward(Pointers p) {
  const float *x = floats(p[0]), *w = floats(p[1]);
  float* y = floats(p[2]);
  for (int s = 0; s < kBatch; ++s, x += kWidth, y += kWidth) {
    std::fill_n(y, kWidth, 0.0F);
    for (int i = 0; i < kWidth; ++i) {
      for (int j = 0; j < kWidth; ++j) y[j] += x[i] * w[i * kWidth + j];
    }
    for (int j = 0; j < kWidth; ++j) y[j] = std::max(y[j], 0.0F);
  }
}

// The first kClasses of the last layer's values are scores. loss, and dy = d loss / d y
void softmax_loss(Pointers p) {
  const float *y = floats(p[0]), *labels = floats(p[1]);
  float *loss = floats(p[2]), *dy = floats(p[3]);
  *loss = 0;
  for (int s = 0; s < kBatch; ++s, y += kWidth, dy += kWidth) {
    std::fill_n(dy, kWidth, 0.0F);
    const float top = *std::max_element(y, y + kClasses);
    float sum = 0;
    for (int c = 0; c < kClasses; ++c) sum += dy[c] = std::exp(y[c] - top);
    const int label = static_cast<int>(labels[s]);
    *loss -= std::log(dy[label] / sum) / kBatch;
    for (int c = 0; c < kClasses; ++c) dy[c] = (dy[c] / sum - (c == label ? 1.0F : 0.0F)) / kBatch;
  }
}

// dx = (dy where y > 0) w^T
void backward(Pointers p) {
  const float *dy = floats(p[0]), *y = floats(p[1]), *w = floats(p[2]);
  float* dx = floats(p[3]);
  for (int s = 0; s < kBatch; ++s, dy += kWidth, y += kWidth, dx += kWidth) {
    for (int i = 0; i < kWidth; ++i) {
      dx[i] = 0;
      for (int j = 0; j < kWidth; ++j) dx[i] += y[j] > 0 ? dy[j] * w[i * kWidth + j] : 0;
    }
  }
}

// w -= rate x^T (dy where y > 0)
void step(Pointers p) {
  const float *dy = floats(p[0]), *y = floats(p[1]), *x = floats(p[2]);
  float* w = floats(p[3]);
  for (int s = 0; s < kBatch; ++s, dy += kWidth, y += kWidth, x += kWidth) {
    for (int i = 0; i < kWidth; ++i) {
      for (int j = 0; j < kWidth; ++j) w[i * kWidth + j] -= y[j] > 0 ? kRate * x[i] * dy[j] : 0;
    }
  }
}

// Samples around one centre for each class.
struct Data {
  std::vector<float> samples, labels;
  Data()
      : samples(std::size_t{kBatches} * kBatch * kWidth), labels(std::size_t{kBatches} * kBatch) {
    std::mt19937 random(1);
    const auto number = [&] { return static_cast<float>(random() % 2001) / 1000 - 1; };
    std::vector<float> centres(std::size_t{kClasses} * kWidth);
    for (float& c : centres) c = number();
    for (std::size_t s = 0; s < labels.size(); ++s) {
      const std::size_t label = random() % kClasses;
      labels[s] = static_cast<float>(label);
      for (std::size_t i = 0; i < kWidth; ++i) {
        samples[s * kWidth + i] = centres[label * kWidth + i] + 0.7F * number();
      }
    }
  }
};

struct Run {
  std::vector<float> weights;
  tp::SessionReport report;
};

float iteration(tp::Session& session, const std::vector<tp::Block>& w, const Data& data,
                int batch) {
  std::vector<tp::Block> x{session.malloc(kActivation)};
  const tp::Block labels = session.malloc(sizeof(float) * kBatch);
  session.upload(x[0], &data.samples[std::size_t(batch) * kBatch * kWidth], kActivation);
  session.upload(labels, &data.labels[std::size_t(batch) * kBatch], sizeof(float) * kBatch);
  for (const tp::Block weight : w) {
    x.push_back(session.malloc(kActivation));
    session.exec(forward, "forward", {x[x.size() - 2], weight}, {x.back()}, {}, true);
  }
  const tp::Block loss = session.malloc(sizeof(float));
  tp::Block dy = session.malloc(kActivation);
  session.exec(softmax_loss, "loss", {x.back(), labels}, {loss, dy});
  for (std::size_t i = w.size(); i-- > 0;) {
    const tp::Block dx = session.malloc(kActivation);
    session.exec(backward, "backward", {dy, x[i + 1], w[i]}, {dx});
    session.exec(step, "step", {dy, x[i + 1], x[i]}, {}, {w[i]});
    session.free(x[i + 1]);
    session.free(dy);
    dy = dx;
  }
  float value = 0;
  session.download(loss, &value, sizeof value);
  for (const tp::Block block : {dy, loss, labels, x[0]}) session.free(block);
  return value;
}

Run train(std::int64_t budget, const std::string& folder, bool print) {
  tp::SessionOptions options;
  options.budget = budget;
  options.folder = folder;
  options.evaluation_limit = 500;  // no clock: each run has the same plan
  options.plan_beside = false;     // by plan_now, below; by itself it would be planned meanwhile
  tp::Session session(options);
  const Data data;
  std::mt19937 random(2);
  std::vector<tp::Block> w;
  std::vector<float> values(kWidth * kWidth);
  for (int i = 0; i < kLayers; ++i) {
    for (float& v : values) v = (static_cast<float>(random() % 2001) / 1000 - 1) * 0.27F;
    w.push_back(session.malloc(kWeight));
    session.upload(w.back(), values.data(), kWeight);
  }
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    float loss = 0;
    for (int batch = 0; batch < kBatches; ++batch) loss += iteration(session, w, data, batch);
    if (print) std::printf("epoch %d: loss %.4f\n", epoch, static_cast<double>(loss / kBatches));
    if (epoch == 1) session.plan_now();
  }
  Run run{{}, session.report()};
  for (const tp::Block weight : w) {
    session.download(weight, values.data(), kWeight);
    run.weights.insert(run.weights.end(), values.begin(), values.end());
  }
  return run;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string folder = argc > 1 ? argv[1] : "";
    const Run whole = train(64 << 20, {}, false);
    const std::int64_t budget = whole.report.device_peak / 3;
    const Run third = train(budget, folder, true);
    const tp::SessionReport& r = third.report;
    std::printf("%lld of %lld bytes used at most, of %lld that it takes\n",
                static_cast<long long>(r.device_peak), static_cast<long long>(budget),
                static_cast<long long>(whole.report.device_peak));
    std::printf("%lld of %d iterations by a plan, %lld bytes moved, stalled %.3f ms\n",
                static_cast<long long>(r.planned_iterations), kEpochs * kBatches,
                static_cast<long long>(r.moved), static_cast<double>(r.stalled.count()) / 1e6);
    std::printf("an iteration: predicted %.3f ms, measured %.3f ms\n",
                static_cast<double>(r.predicted.count()) / 1e6,
                static_cast<double>(r.measured.count()) / 1e6);
    if (!r.why_no_plan.empty()) std::printf("no plan: %s\n", r.why_no_plan.c_str());
    const bool same = third.weights == whole.weights;
    std::printf("the weights are %sthose of a training in all its memory, bit for bit\n",
                same ? "" : "NOT ");
    return same && r.planned_iterations > 0 ? 0 : 1;
  } catch (const tp::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
