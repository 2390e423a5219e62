#include <vector>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

void run(const EmbeddingForward& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto tokens = read<std::int32_t>(desc, pointers, 0);
  const auto table = read<float>(desc, pointers, 1);
  const auto positions = read<float>(desc, pointers, 2);
  const auto y = write<float>(desc, pointers, 3);
  for_each_element(y, [&](auto n, auto t, auto c, auto) {
    const std::int32_t token = tokens(n, t);
    const bool known = token >= 0 && token < table.dim(0);
    y(n, t, c) = (known ? table(token, c) : 0.0F) + positions(t, c);
  });
}

void run(const EmbeddingBackward& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto tokens = read<std::int32_t>(desc, pointers, 0);
  const auto dy = read<float>(desc, pointers, 1);
  const auto dtable = write<float>(desc, pointers, 2);
  const auto dpositions = write<float>(desc, pointers, 3);
  const auto width = static_cast<std::size_t>(dy.dim(2));
  std::vector<double> rows(static_cast<std::size_t>(dtable.dim(0)) * width);
  std::vector<double> places(static_cast<std::size_t>(dpositions.dim(0)) * width);
  for_each_element(dy, [&](auto n, auto t, auto c, auto) {
    const auto column = static_cast<std::size_t>(c);
    places[static_cast<std::size_t>(t) * width + column] += static_cast<double>(dy(n, t, c));
    const std::int32_t token = tokens(n, t);
    if (token < 0 || token >= dtable.dim(0)) return;
    rows[static_cast<std::size_t>(token) * width + column] += static_cast<double>(dy(n, t, c));
  });
  for (std::size_t i = 0; i < rows.size(); ++i) dtable.data()[i] = static_cast<float>(rows[i]);
  for (std::size_t i = 0; i < places.size(); ++i) {
    dpositions.data()[i] = static_cast<float>(places[i]);
  }
}

}  // namespace tidepool::nn::reference
