// What the stand-in's cuDNN descriptors hold, and convolutions by them as plain loops.
#pragma once

#include <cudnn.h>

#include <algorithm>
#include <vector>

struct cudnnTensorStruct {
  long n = 0, c = 0, h = 0, w = 0;
  [[nodiscard]] long size() const { return n * c * h * w; }
};
struct cudnnFilterStruct {
  long k = 0, c = 0, h = 0, w = 0;
  [[nodiscard]] long size() const { return k * c * h * w; }
};
struct cudnnConvolutionStruct {
  long padding_h = 0, padding_w = 0, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  long groups = 1;
};
struct cudnnPoolingStruct {
  cudnnPoolingMode_t mode{};
  long h = 0, w = 0, padding_h = 0, padding_w = 0, stride_h = 1, stride_w = 1;

  /// Calls f(place in a plane of x) for what the window of output (i, j) has of it; how many.
  template <class F>
  long for_each_place(const cudnnTensorStruct& x, long i, long j, F f) const {
    long places = 0;
    for (long a = 0; a < h; ++a) {
      for (long b = 0; b < w; ++b) {
        const long row = i * stride_h - padding_h + a, column = j * stride_w - padding_w + b;
        if (row < 0 || row >= x.h || column < 0 || column >= x.w) continue;
        f(row * x.w + column);
        ++places;
      }
    }
    return places;
  }
};

namespace standin {

/// One convolution: x is n images of c planes, y of k. A filter sees the w.c planes of its group.
struct Shape {
  cudnnTensorStruct x, y;
  cudnnFilterStruct w;
  cudnnConvolutionStruct c;

  [[nodiscard]] bool fits() const {
    const long h = 1 + (x.h + 2 * c.padding_h - ((w.h - 1) * c.dilation_h + 1)) / c.stride_h;
    const long wide = 1 + (x.w + 2 * c.padding_w - ((w.w - 1) * c.dilation_w + 1)) / c.stride_w;
    return x.c == w.c * c.groups && y.c == w.k && y.c % c.groups == 0 && y.n == x.n && y.h == h &&
           y.w == wide;
  }
  [[nodiscard]] bool winograd() const {
    return c.groups == 1 && w.h == 3 && w.w == 3 && c.stride_h == 1 && c.stride_w == 1;
  }
  [[nodiscard]] long filters() const { return y.c / c.groups; }  ///< of a group
  /// Of x: the one that filter k has weights for as its number `channel`.
  [[nodiscard]] long plane_of(long k, long channel) const { return k / filters() * w.c + channel; }
  /// Calls f(row of x, row of y, first column of y, last + 1, column of x of the first) for every
  /// row of y that filter element (p, q) reaches.
  template <class F>
  void for_each_row(long p, long q, F f) const {
    long first = 0, last = y.w;
    while (first < last && first * c.stride_w - c.padding_w + q < 0) ++first;
    while (last > first && (last - 1) * c.stride_w - c.padding_w + q >= x.w) --last;
    if (first == last) return;
    for (long i = 0; i < y.h; ++i) {
      const long row = i * c.stride_h - c.padding_h + p;
      if (row >= 0 && row < x.h) f(row, i, first, last, first * c.stride_w - c.padding_w + q);
    }
  }
};

template <class Sum>
void convolve(const Shape& s, const float* x, const float* w, float* y, float factor) {
  std::vector<Sum> sums(static_cast<std::size_t>(s.y.h * s.y.w));
  for (long n = 0; n < s.y.n; ++n) {
    for (long k = 0; k < s.y.c; ++k) {
      std::fill(sums.begin(), sums.end(), Sum{0});
      for (long c = 0; c < s.w.c; ++c) {
        const float* plane = x + (n * s.x.c + s.plane_of(k, c)) * s.x.h * s.x.w;
        for (long p = 0; p < s.w.h; ++p) {
          for (long q = 0; q < s.w.w; ++q) {
            const Sum weight = w[((k * s.w.c + c) * s.w.h + p) * s.w.w + q];
            s.for_each_row(p, q, [&](long row, long i, long first, long last, long column) {
              Sum* to = sums.data() + i * s.y.w;
              const float* from = plane + row * s.x.w + column;
              for (long j = first; j < last; ++j) {
                to[j] += weight * static_cast<Sum>(from[(j - first) * s.c.stride_w]);
              }
            });
          }
        }
      }
      float* to = y + (n * s.y.c + k) * s.y.h * s.y.w;
      for (std::size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<float>(sums[i]) * factor;
    }
  }
}

inline void convolve_back(const Shape& s, const float* dy, const float* w, float* dx,
                          float factor) {
  std::vector<double> sums(static_cast<std::size_t>(s.x.h * s.x.w));
  for (long n = 0; n < s.x.n; ++n) {
    for (long c = 0; c < s.x.c; ++c) {
      std::fill(sums.begin(), sums.end(), 0.0);
      const long first = c / s.w.c * s.filters();
      for (long k = first; k < first + s.filters(); ++k) {
        const float* plane = dy + (n * s.y.c + k) * s.y.h * s.y.w;
        for (long p = 0; p < s.w.h; ++p) {
          for (long q = 0; q < s.w.w; ++q) {
            const double weight = w[((k * s.w.c + c % s.w.c) * s.w.h + p) * s.w.w + q];
            s.for_each_row(p, q, [&](long row, long i, long begin, long end, long column) {
              double* to = sums.data() + row * s.x.w + column;
              const float* from = plane + i * s.y.w;
              for (long j = begin; j < end; ++j) {
                to[(j - begin) * s.c.stride_w] += weight * static_cast<double>(from[j]);
              }
            });
          }
        }
      }
      float* to = dx + (n * s.x.c + c) * s.x.h * s.x.w;
      for (std::size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<float>(sums[i]) * factor;
    }
  }
}

inline void convolve_weights(const Shape& s, const float* x, const float* dy, float* dw,
                             float factor) {
  for (long k = 0; k < s.w.k; ++k) {
    for (long c = 0; c < s.w.c; ++c) {
      for (long p = 0; p < s.w.h; ++p) {
        for (long q = 0; q < s.w.w; ++q) {
          double sum = 0;
          for (long n = 0; n < s.x.n; ++n) {
            const float* plane = x + (n * s.x.c + s.plane_of(k, c)) * s.x.h * s.x.w;
            const float* gradient = dy + (n * s.y.c + k) * s.y.h * s.y.w;
            s.for_each_row(p, q, [&](long row, long i, long first, long last, long column) {
              const float* a = plane + row * s.x.w + column;
              const float* b = gradient + i * s.y.w;
              for (long j = first; j < last; ++j) {
                sum +=
                    static_cast<double>(a[(j - first) * s.c.stride_w]) * static_cast<double>(b[j]);
              }
            });
          }
          dw[((k * s.w.c + c) * s.w.h + p) * s.w.w + q] = static_cast<float>(sum) * factor;
        }
      }
    }
  }
}

}  // namespace standin
