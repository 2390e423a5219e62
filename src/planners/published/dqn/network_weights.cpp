#include "planners/published/dqn/network_weights.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/random.h"

namespace tidepool::dqn {
namespace {

constexpr std::string_view kMagic = "TIDEPOOLqnetwork";
constexpr std::uint32_t kForm = 1;
constexpr std::size_t kHead = kMagic.size() + 3 * sizeof(std::uint32_t);

template <class Value>
void append(std::string& bytes, const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class Value>
Value value_at(std::string_view bytes, std::size_t offset) {
  Value value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = bytes.size();
  std::size_t i = 0;
  for (; i + sizeof hash <= bytes.size(); i += sizeof hash) {
    hash = hash_combine(hash, value_at<std::uint64_t>(bytes, i));
  }
  for (; i < bytes.size(); ++i) hash = hash_combine(hash, static_cast<unsigned char>(bytes[i]));
  return hash;
}

std::size_t count(std::pair<std::int32_t, std::int32_t> shape) {
  return static_cast<std::size_t>(shape.first) * static_cast<std::size_t>(shape.second);
}

tl::unexpected<Error> no_network(std::string why) {
  return fail(ErrorCode::bad_input, "is no saved network: " + std::move(why));
}

}  // namespace

NetworkWeights initial_weights(std::int32_t width, std::int32_t hops, std::uint64_t seed) {
  constexpr double kSmallerLast = 0.1;
  auto sizes = usual_sizes(width);
  sizes[6] *= kSmallerLast;
  NetworkWeights weights{width, hops, {}};
  const auto shapes = matrix_shapes(width);
  for (std::size_t m = 0; m < shapes.size(); ++m) {
    Random random(hash_combine(seed, m));
    weights.matrices[m].resize(count(shapes[m]));
    const double bound = std::sqrt(3.0) * sizes[m];
    for (float& w : weights.matrices[m]) {
      w = static_cast<float>(bound * (2 * random.uniform() - 1));
    }
  }
  return weights;
}

std::string write_network(const NetworkWeights& weights) {
  std::string bytes(kMagic);
  append(bytes, kForm);
  append(bytes, weights.width);
  append(bytes, weights.hops);
  for (const auto& matrix : weights.matrices) {
    bytes.append(reinterpret_cast<const char*>(matrix.data()), matrix.size() * sizeof(float));
  }
  append(bytes, hash_of(bytes));
  return bytes;
}

Result<NetworkWeights> read_network(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return no_network("it begins otherwise");
  if (bytes.size() < kHead) return no_network("it ends early");
  const auto form = value_at<std::uint32_t>(bytes, kMagic.size());
  if (form != kForm) {
    return no_network(fmt::format("its form is {}, this program reads {}", form, kForm));
  }
  NetworkWeights weights;
  weights.width = value_at<std::int32_t>(bytes, kMagic.size() + 4);
  weights.hops = value_at<std::int32_t>(bytes, kMagic.size() + 8);
  if (weights.width < 1 || weights.width > kMostWidth) {
    return no_network(fmt::format("a width of {}", weights.width));
  }
  if (weights.hops < 1 || weights.hops > kMostHops) {
    return no_network(fmt::format("{} hops", weights.hops));
  }
  const auto shapes = matrix_shapes(weights.width);
  std::size_t size = kHead + sizeof(std::uint64_t);
  for (const auto& shape : shapes) size += count(shape) * sizeof(float);
  if (bytes.size() != size) {
    return no_network(fmt::format("{} bytes instead of {}", bytes.size(), size));
  }
  const std::size_t end = size - sizeof(std::uint64_t);
  if (value_at<std::uint64_t>(bytes, end) != hash_of(bytes.substr(0, end))) {
    return no_network("its bytes are damaged");
  }
  std::size_t offset = kHead;
  for (std::size_t m = 0; m < shapes.size(); ++m) {
    auto& matrix = weights.matrices[m];
    matrix.resize(count(shapes[m]));
    std::memcpy(matrix.data(), bytes.data() + offset, matrix.size() * sizeof(float));
    offset += matrix.size() * sizeof(float);
    for (const float w : matrix) {
      if (!std::isfinite(w)) return no_network(fmt::format("W{} has a weight {}", m + 1, w));
    }
  }
  return weights;
}

}  // namespace tidepool::dqn
