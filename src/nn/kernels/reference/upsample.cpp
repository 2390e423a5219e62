#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

void run(const UpsampleForward& op, const OpDesc& desc, Pointers pointers) {
  const auto x = read<float>(desc, pointers, 0);
  const auto y = write<float>(desc, pointers, 1);
  for_each_element(y, [&](auto n, auto c, auto h, auto w) {
    const UpsampleSource row = upsample_source(op, x.dim(2), h);
    const UpsampleSource column = upsample_source(op, x.dim(3), w);
    const auto in_row = [&](std::int64_t at) {
      const double second = static_cast<double>(column.of_second);
      return (1 - second) * static_cast<double>(x(n, c, at, column.first)) +
             second * static_cast<double>(x(n, c, at, column.second));
    };
    const double second = static_cast<double>(row.of_second);
    y(n, c, h, w) =
        static_cast<float>((1 - second) * in_row(row.first) + second * in_row(row.second));
  });
}

void run(const UpsampleBackward& op, const OpDesc& desc, Pointers pointers) {
  const auto dy = read<float>(desc, pointers, 0);
  const auto dx = write<float>(desc, pointers, 1);
  for_each_element(dx, [&](auto n, auto c, auto h, auto w) {
    double sum = 0;
    const std::int64_t last_row = upsample_end(op, dx.dim(2), h);
    const std::int64_t last_column = upsample_end(op, dx.dim(3), w);
    for (std::int64_t i = upsample_begin(op, h); i < last_row; ++i) {
      const float of_row = upsample_source(op, dx.dim(2), i).weight_of(h);
      for (std::int64_t k = upsample_begin(op, w); k < last_column; ++k) {
        const float of_column = upsample_source(op, dx.dim(3), k).weight_of(w);
        sum += static_cast<double>(of_row) * static_cast<double>(of_column) *
               static_cast<double>(dy(n, c, i, k));
      }
    }
    dx(n, c, h, w) = static_cast<float>(sum);
  });
}

}  // namespace tidepool::nn::reference
