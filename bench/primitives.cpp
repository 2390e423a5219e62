// Times every op of a CIFAR VGG16 training iteration at batch 100 with every algorithm of the CPU
// kernels, on one thread: median of three runs after a warm-up.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "base/random.h"
#include "nn/kernel.h"
#include "nn/ops/op_desc.h"

namespace {

using namespace tidepool;
using namespace tidepool::nn;

constexpr std::int64_t kBatch = 100;

struct NamedOp {
  std::string name;
  OpDesc desc;
};

struct FreeBuffer {
  void operator()(std::byte* buffer) const { ::operator delete[](buffer, std::align_val_t{64}); }
};
using Buffer = std::unique_ptr<std::byte[], FreeBuffer>;

Buffer make_buffer(Bytes bytes) {
  const auto size = static_cast<std::size_t>(std::max<Bytes>(bytes, 1));
  Buffer buffer(static_cast<std::byte*>(::operator new[](size, std::align_val_t{64})));
  std::memset(buffer.get(), 0, size);
  return buffer;
}

Buffer make_operand(const TensorDesc& desc, Random& random) {
  Buffer buffer = make_buffer(desc.bytes());
  if (desc.type != ElementType::f32) return buffer;
  auto* values = reinterpret_cast<float*>(buffer.get());
  const Bytes count = desc.bytes() / static_cast<Bytes>(sizeof(float));
  for (Bytes i = 0; i < count; ++i) values[i] = static_cast<float>(random.uniform() - 0.5);
  return buffer;
}

TensorDesc activation(std::int64_t channels, std::int64_t size) {
  return {{kBatch, channels, size, size}, ElementType::f32, Layout::nChw16c};
}

class Vgg16 {
 public:
  std::vector<NamedOp> ops;

  void build() {
    constexpr int kWidths[] = {64, 64,  0,   128, 128, 0,   256, 256, 256,
                               0,  512, 512, 512, 0,   512, 512, 512, 0};
    for (const int width : kWidths) {
      if (width > 0) {
        convolution(width);
        normalise_and_activate(activation(channels_, size_));
      } else {
        pool();
      }
    }
    linear(512);
    normalise_and_activate({{kBatch, 512}});
    linear(10);
    loss();
  }

 private:
  std::int64_t channels_ = 3, size_ = 32;
  int layer_ = 0;

  void add(const AnyOp& op, std::vector<TensorDesc> operands, bool in_place = false) {
    OpDesc desc{.op = op, .in_place = in_place, .operands = std::move(operands)};
    std::string name = std::to_string(layer_) + " " + desc.name();
    ops.push_back({std::move(name), std::move(desc)});
  }

  void update(const TensorDesc& weight) {
    const TensorDesc control{{sizeof(ControlBlock)}, ElementType::u8};
    add(SgdUpdate{}, {weight, control, weight, weight});
  }

  void convolution(std::int64_t width) {
    ++layer_;
    const Window desc{3, 1, 1};
    const bool first = channels_ == 3;
    TensorDesc x = activation(channels_, size_);
    TensorDesc weight{{width, channels_, 3, 3}, ElementType::f32, Layout::OIhw16i16o};
    if (first) {
      x.layout = Layout::plain;
      weight.layout = Layout::Ohwi16o;
    }
    const TensorDesc y = activation(width, size_);
    add(ConvForward{desc}, {x, weight, y});
    add(ConvBackwardWeights{desc}, {x, y, weight});
    if (!first) {
      TensorDesc backward_weight = weight;
      backward_weight.layout = Layout::OIhw16o16i;
      add(Reorder{}, {weight, backward_weight});
      add(ConvBackwardData{desc}, {y, backward_weight, x});
    }
    update(weight);
    channels_ = width;
  }

  void normalise_and_activate(const TensorDesc& x) {
    const TensorDesc c{{x.dims[1]}}, control{{sizeof(ControlBlock)}, ElementType::u8};
    add(BatchNormForward{}, {x, c, c, x, c, c});
    add(BatchNormStatistics{}, {c, c, c, c});
    add(ReluForward{}, {x}, true);
    const DropoutAttributes drop{.rate = 0.4F};
    add(DropoutForward{drop}, {x, control}, true);
    add(DropoutBackward{drop}, {x, control}, true);
    add(ReluBackward{}, {x, x}, true);
    add(BatchNormBackward{}, {x, x, c, c, c, c, c}, true);
    update(c);
  }

  void pool() {
    ++layer_;
    const Window desc{2, 2, 0};
    const TensorDesc x = activation(channels_, size_);
    size_ /= 2;
    const TensorDesc y = activation(channels_, size_);
    TensorDesc index = y;
    index.type = ElementType::u8;
    add(MaxPoolForward{desc}, {x, y, index});
    add(MaxPoolBackward{desc}, {y, index, x});
  }

  void linear(std::int64_t features) {
    ++layer_;
    const TensorDesc x{{kBatch, channels_}}, weight{{features, channels_}}, bias{{features}},
        y{{kBatch, features}};
    add(LinearForward{}, {x, weight, bias, y});
    add(LinearBackwardWeights{}, {x, y, weight, bias});
    add(LinearBackwardData{}, {y, weight, x});
    update(weight);
    channels_ = features;
  }

  void loss() {
    ++layer_;
    const LossAttributes desc{kBatch};
    const TensorDesc logits{{kBatch, channels_}}, labels{{kBatch}, ElementType::i32};
    add(SoftmaxLossForward{desc}, {logits, labels, {{1}}, logits});
    add(SoftmaxLossBackward{desc}, {logits, labels, logits});
  }
};

double median_seconds(Kernel& kernel, int algorithm, const std::vector<std::byte*>& pointers,
                      std::byte* workspace) {
  kernel.run(algorithm, pointers, workspace, nullptr);
  std::array<double, 3> seconds{};
  for (double& s : seconds) {
    const auto start = std::chrono::steady_clock::now();
    kernel.run(algorithm, pointers, workspace, nullptr);
    s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[1];
}

struct Total {
  std::string kind;
  double first = 0;  ///< seconds with the first algorithm of each op
  double best = 0;   ///< seconds with the fastest
};

/// Prints a line per algorithm and adds to `total`.
void measure(const NamedOp& op, Total& total) {
  Random random(1);
  std::vector<Buffer> buffers;
  std::vector<std::byte*> pointers;
  for (const TensorDesc& operand : op.desc.operands) {
    buffers.push_back(make_operand(operand, random));
    pointers.push_back(buffers.back().get());
  }
  const auto kernel = cpu_kernels().make(op.desc);
  double best = 1e9;
  for (std::size_t a = 0; a < kernel->algorithms().size(); ++a) {
    const KernelAlgorithm& algorithm = kernel->algorithms()[a];
    const Buffer workspace = make_buffer(algorithm.workspace);
    const double seconds = median_seconds(*kernel, static_cast<int>(a), pointers, workspace.get());
    if (a == 0) total.first += seconds;
    best = std::min(best, seconds);
    std::printf("%-28s %-10s %9.3f ms %8.1f GFLOP/s %7.1f GB/s %12s\n", op.name.c_str(),
                algorithm.name.c_str(), seconds * 1e3, op.desc.flops() / seconds * 1e-9,
                static_cast<double>(op.desc.traffic()) / seconds * 1e-9,
                algorithm.workspace > 0 ? std::to_string(algorithm.workspace).c_str() : "");
  }
  total.best += best;
}

}  // namespace

int main() {
  Vgg16 model;
  model.build();
  std::vector<Total> totals;
  for (const NamedOp& op : model.ops) {
    auto found = std::find_if(totals.begin(), totals.end(),
                              [&](const Total& t) { return t.kind == op.desc.name(); });
    if (found == totals.end()) found = totals.insert(found, {op.desc.name(), 0, 0});
    measure(op, *found);
  }
  std::printf("\n%-28s %12s %12s\n", "total", "first, ms", "fastest, ms");
  Total sum;
  for (const Total& total : totals) {
    std::printf("%-28s %12.2f %12.2f\n", total.kind.c_str(), total.first * 1e3, total.best * 1e3);
    sum.first += total.first;
    sum.best += total.best;
  }
  std::printf("%-28s %12.2f %12.2f\n", "all", sum.first * 1e3, sum.best * 1e3);
}
