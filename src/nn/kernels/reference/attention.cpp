#include <algorithm>
#include <cmath>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {
namespace {

/// Calls `term(n, h, token, column)` for each element of samples x tokens x width `rows`; `column`
/// is of the whole width.
template <class View, class Term>
void for_each_of_heads(const View& rows, std::int64_t heads, Term term) {
  const std::int64_t head = rows.dim(2) / heads;
  for_each_element(rows, [&](auto n, auto t, auto c, auto) { term(n, c / head, t, c); });
}

}  // namespace

void run(const AttentionScores& op, const OpDesc& desc, Pointers pointers) {
  const auto a = read<float>(desc, pointers, 0);
  const auto b = read<float>(desc, pointers, 1);
  const auto s = write<float>(desc, pointers, 2);
  const std::int64_t head = a.dim(2) / s.dim(1);
  for_each_element(s, [&](auto n, auto h, auto i, auto j) {
    double sum = 0;
    for (std::int64_t c = h * head; c < (h + 1) * head; ++c) {
      sum += static_cast<double>(a(n, i, c)) * b(n, j, c);
    }
    s(n, h, i, j) = static_cast<float>(sum * op.scale);
  });
}

void run(const AttentionMix& op, const OpDesc& desc, Pointers pointers) {
  const auto s = read<float>(desc, pointers, 0);
  const auto b = read<float>(desc, pointers, 1);
  const auto y = write<float>(desc, pointers, 2);
  for_each_of_heads(y, s.dim(1), [&](auto n, auto h, auto i, auto c) {
    double sum = 0;
    for (std::int64_t j = 0; j < s.dim(3); ++j) {
      sum += static_cast<double>(s(n, h, i, j)) * b(n, j, c);
    }
    y(n, i, c) = static_cast<float>(sum * op.scale);
  });
}

void run(const AttentionMixTransposed& op, const OpDesc& desc, Pointers pointers) {
  const auto s = read<float>(desc, pointers, 0);
  const auto a = read<float>(desc, pointers, 1);
  const auto y = write<float>(desc, pointers, 2);
  for_each_of_heads(y, s.dim(1), [&](auto n, auto h, auto j, auto c) {
    double sum = 0;
    for (std::int64_t i = 0; i < s.dim(2); ++i) {
      sum += static_cast<double>(s(n, h, i, j)) * a(n, i, c);
    }
    y(n, j, c) = static_cast<float>(sum * op.scale);
  });
}

void run(const AttentionSoftmaxForward& op, const OpDesc& desc, Pointers pointers) {
  const auto s = update<float>(desc, pointers, 0);
  const auto p = desc.in_place ? s : write<float>(desc, pointers, 1);
  for (std::int64_t n = 0; n < s.dim(0); ++n) {
    for (std::int64_t h = 0; h < s.dim(1); ++h) {
      for (std::int64_t i = 0; i < s.dim(2); ++i) {
        const std::int64_t seen = op.causal ? i + 1 : s.dim(3);
        double largest = s(n, h, i, 0);
        for (std::int64_t j = 1; j < seen; ++j) {
          largest = std::max(largest, static_cast<double>(s(n, h, i, j)));
        }
        double sum = 0;
        for (std::int64_t j = 0; j < seen; ++j) sum += std::exp(s(n, h, i, j) - largest);
        for (std::int64_t j = 0; j < s.dim(3); ++j) {
          const double part = j < seen ? std::exp(s(n, h, i, j) - largest) / sum : 0;
          p(n, h, i, j) = static_cast<float>(part);
        }
      }
    }
  }
}

void run(const AttentionSoftmaxBackward& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto p = read<float>(desc, pointers, 0);
  const auto dp = update<float>(desc, pointers, 1);
  const auto ds = desc.in_place ? dp : write<float>(desc, pointers, 2);
  for (std::int64_t n = 0; n < p.dim(0); ++n) {
    for (std::int64_t h = 0; h < p.dim(1); ++h) {
      for (std::int64_t i = 0; i < p.dim(2); ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < p.dim(3); ++j) {
          sum += static_cast<double>(p(n, h, i, j)) * dp(n, h, i, j);
        }
        for (std::int64_t j = 0; j < p.dim(3); ++j) {
          ds(n, h, i, j) = static_cast<float>(p(n, h, i, j) * (dp(n, h, i, j) - sum));
        }
      }
    }
  }
}

}  // namespace tidepool::nn::reference
