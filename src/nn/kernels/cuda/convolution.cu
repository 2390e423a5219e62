// Convolutions as products of matrices that are never written out (implicit GEMM), for those cuDNN
// has no deterministic algorithm for. Every sum is taken in one order: of parts that the shape
// alone tells, and within a part in the order of the sum, in float with a carry into double.
#include "nn/kernels/cuda/grid.cuh"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::device_code {
namespace {

/// A block of kThreads threads makes kTile x kTile results, a thread kOwn x kOwn of them, from
/// kDepth terms at a time.
constexpr int kTile = 64, kDepth = 16, kOwn = 4, kSide = kTile / kOwn;
static_assert(kSide * kSide == kThreads);
/// Terms between carries into double.
constexpr int kCarry = 1024;

/// The product of a rows x depth and a depth x columns matrix.
struct Extent {
  int rows, columns, depth;
};

// The three directions. Each tells the elements of its matrices and where a result goes, for one
// group of channels and filters at a time.

/// y[k][image, place] = sum over (c, p, q) of weight[k][c, p, q] * x[c, p, q][image, place]
struct Forward {
  Convolution s;
  const float *x, *weight;

  __host__ __device__ Extent extent() const {
    return {s.filters / s.groups, s.images * s.out_height * s.out_width,
            s.channels / s.groups * s.window_height * s.window_width};
  }
  __device__ float left(int group, int filter, int term) const {
    const Extent e = extent();
    return weight[static_cast<std::int64_t>(group * e.rows + filter) * e.depth + term];
  }
  __device__ float right(int group, int term, int column) const {
    const int place = column % (s.out_height * s.out_width);
    const int image = column / (s.out_height * s.out_width);
    const int taps = s.window_height * s.window_width;
    const int tap = term % taps, channel = group * (s.channels / s.groups) + term / taps;
    const int h = place / s.out_width * s.stride - s.padding_height + tap / s.window_width;
    const int w = place % s.out_width * s.stride - s.padding_width + tap % s.window_width;
    if (h < 0 || h >= s.height || w < 0 || w >= s.width) return 0;
    return x[((static_cast<std::int64_t>(image) * s.channels + channel) * s.height + h) * s.width +
             w];
  }
  __device__ std::int64_t result(int group, int filter, int column) const {
    const int plane = s.out_height * s.out_width;
    return (static_cast<std::int64_t>(column / plane) * s.filters + group * extent().rows +
            filter) *
               plane +
           column % plane;
  }
};

/// dx[c][image, place] = sum over (k, p, q) of weight[k][c, p, q] * dy[k, p, q][image, place]
struct BackwardData {
  Convolution s;
  const float *dy, *weight;

  __host__ __device__ Extent extent() const {
    return {s.channels / s.groups, s.images * s.height * s.width,
            s.filters / s.groups * s.window_height * s.window_width};
  }
  __device__ float left(int group, int channel, int term) const {
    const int taps = s.window_height * s.window_width;
    const int filter = group * (s.filters / s.groups) + term / taps;
    return weight[(static_cast<std::int64_t>(filter) * extent().rows + channel) * taps +
                  term % taps];
  }
  __device__ float right(int group, int term, int column) const {
    const int place = column % (s.height * s.width), image = column / (s.height * s.width);
    const int taps = s.window_height * s.window_width;
    const int tap = term % taps, filter = group * (s.filters / s.groups) + term / taps;
    // The window that has this place under this tap.
    const int h = place / s.width + s.padding_height - tap / s.window_width;
    const int w = place % s.width + s.padding_width - tap % s.window_width;
    if (h < 0 || w < 0 || h % s.stride != 0 || w % s.stride != 0) return 0;
    if (h / s.stride >= s.out_height || w / s.stride >= s.out_width) return 0;
    return dy[((static_cast<std::int64_t>(image) * s.filters + filter) * s.out_height +
               h / s.stride) *
                  s.out_width +
              w / s.stride];
  }
  __device__ std::int64_t result(int group, int channel, int column) const {
    const int plane = s.height * s.width;
    return (static_cast<std::int64_t>(column / plane) * s.channels + group * extent().rows +
            channel) *
               plane +
           column % plane;
  }
};

/// dweight[k][c, p, q] = sum over (image, place) of dy[k][image, place] * x[image, place][c, p, q]
struct BackwardWeights {
  Convolution s;
  const float *x, *dy;

  __host__ __device__ Extent extent() const {
    return {s.filters / s.groups, s.channels / s.groups * s.window_height * s.window_width,
            s.images * s.out_height * s.out_width};
  }
  __device__ float left(int group, int filter, int term) const {
    const int plane = s.out_height * s.out_width;
    return dy[(static_cast<std::int64_t>(term / plane) * s.filters + group * extent().rows +
               filter) *
                  plane +
              term % plane];
  }
  __device__ float right(int group, int term, int column) const {
    return Forward{s, x, nullptr}.right(group, column, term);
  }
  __device__ std::int64_t result(int group, int filter, int column) const {
    const Extent e = extent();
    return static_cast<std::int64_t>(group * e.rows + filter) * e.columns + column;
  }
};

/// blockIdx.z counts the parts of the sums of a group and then the groups. A part's results go to
/// `results` plus as many times `size`.
template <class Direction>
__global__ void product_kernel(Direction d, float* results, std::int64_t size, int part_depth,
                               int parts) {
  __shared__ float left[kDepth][kTile], right[kDepth][kTile];
  const Extent e = d.extent();
  // Beyond the last row, column or term these may be beyond an int, too.
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const int own_row = static_cast<int>(threadIdx.x) / kSide * kOwn;
  const int own_column = static_cast<int>(threadIdx.x) % kSide * kOwn;
  const int group = static_cast<int>(blockIdx.z) / parts;
  const int part = static_cast<int>(blockIdx.z) % parts;
  const std::int64_t begin = static_cast<std::int64_t>(part) * part_depth;
  const std::int64_t end = begin + part_depth < e.depth ? begin + part_depth : e.depth;
  float sums[kOwn][kOwn] = {};
  double totals[kOwn][kOwn] = {};
  int since_carry = 0;
  for (std::int64_t term = begin; term < end; term += kDepth) {
    for (int i = static_cast<int>(threadIdx.x); i < kDepth * kTile; i += kThreads) {
      const int k = i / kTile, at = i % kTile;
      const bool inside = term + k < end;
      const std::int64_t row = first_row + at, column = first_column + at;
      left[k][at] = inside && row < e.rows
                        ? d.left(group, static_cast<int>(row), static_cast<int>(term + k))
                        : 0.0F;
      right[k][at] = inside && column < e.columns
                         ? d.right(group, static_cast<int>(term + k), static_cast<int>(column))
                         : 0.0F;
    }
    __syncthreads();
    for (int k = 0; k < kDepth; ++k) {
      for (int i = 0; i < kOwn; ++i) {
        for (int j = 0; j < kOwn; ++j) {
          sums[i][j] += left[k][own_row + i] * right[k][own_column + j];
        }
      }
    }
    __syncthreads();
    since_carry += kDepth;
    if (since_carry < kCarry) continue;
    since_carry = 0;
    for (int i = 0; i < kOwn; ++i) {
      for (int j = 0; j < kOwn; ++j) {
        totals[i][j] += sums[i][j];
        sums[i][j] = 0;
      }
    }
  }
  for (int i = 0; i < kOwn; ++i) {
    for (int j = 0; j < kOwn; ++j) {
      const std::int64_t row = first_row + own_row + i, column = first_column + own_column + j;
      if (row >= e.rows || column >= e.columns) continue;
      results[part * size + d.result(group, static_cast<int>(row), static_cast<int>(column))] =
          static_cast<float>(totals[i][j] + sums[i][j]);
    }
  }
}

__global__ void add_parts_kernel(const float* parts, int count, float* sums, std::int64_t size) {
  for (std::int64_t i = first_index(); i < size; i += index_step()) {
    double sum = 0;
    for (int part = 0; part < count; ++part) sum += parts[part * size + i];
    sums[i] = static_cast<float>(sum);
  }
}

unsigned tiles(int count) { return static_cast<unsigned>((count - 1) / kTile + 1); }

template <class Direction>
void multiply(const Direction& d, float* results, std::int64_t size, int parts,
              cudaStream_t stream) {
  const Extent e = d.extent();
  const dim3 grid(tiles(e.columns), tiles(e.rows), static_cast<unsigned>(d.s.groups * parts));
  const int part_depth = (e.depth - 1) / parts + 1;
  product_kernel<<<grid, kThreads, 0, stream>>>(d, results, size, part_depth, parts);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

/// How many parts the sums of weight gradients are cut into: enough blocks to fill a GPU, each with
/// some work.
int parts_of(const Convolution& s) {
  constexpr int kBlocks = 264, kLeastDepth = 2048;
  const Extent e = BackwardWeights{s, nullptr, nullptr}.extent();
  const int blocks = static_cast<int>(tiles(e.rows) * tiles(e.columns)) * s.groups;
  return std::max(1, std::min((kBlocks + blocks - 1) / blocks, e.depth / kLeastDepth));
}

std::int64_t weights_of(const Convolution& s) {
  return static_cast<std::int64_t>(s.filters) * (s.channels / s.groups) * s.window_height *
         s.window_width;
}

}  // namespace

void convolution_forward(const Convolution& s, const float* x, const float* weight, float* y,
                         cudaStream_t stream) {
  multiply(Forward{s, x, weight}, y, 0, 1, stream);
}

void convolution_backward_data(const Convolution& s, const float* dy, const float* weight,
                               float* dx, cudaStream_t stream) {
  multiply(BackwardData{s, dy, weight}, dx, 0, 1, stream);
}

std::int64_t convolution_backward_weights_workspace(const Convolution& s) {
  const int parts = parts_of(s);
  return parts == 1 ? 0 : parts * weights_of(s) * static_cast<std::int64_t>(sizeof(float));
}

void convolution_backward_weights(const Convolution& s, const float* x, const float* dy,
                                  float* dweight, float* workspace, cudaStream_t stream) {
  const int parts = parts_of(s);
  const std::int64_t size = weights_of(s);
  multiply(BackwardWeights{s, x, dy}, parts == 1 ? dweight : workspace, size, parts, stream);
  if (parts == 1) return;
  add_parts_kernel<<<blocks_for(size), kThreads, 0, stream>>>(workspace, parts, dweight, size);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void load_convolution() {
  cudaFuncAttributes attributes{};
  TIDEPOOL_CUDA_CHECK(cudaFuncGetAttributes(&attributes, add_parts_kernel));
}

}  // namespace tidepool::nn::device_code
