#include "nn/data/checkpoint.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "base/json.h"

namespace tidepool::nn {
namespace {

constexpr std::string_view kMagic = "tidepool checkpoint 1\n";
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kCheckBytes = 4;

void put_little_endian(std::string& to, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    to.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

std::uint64_t get_little_endian(std::string_view from, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(from[i])) << (8 * i);
  }
  return value;
}

std::uint32_t check_sum(std::string_view content) {
  // zlib counts in unsigned int: go in pieces.
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  uLong crc = crc32(0, nullptr, 0);
  while (!content.empty()) {
    const std::size_t piece = std::min(kPiece, content.size());
    crc = crc32(crc, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(piece));
    content.remove_prefix(piece);
  }
  return static_cast<std::uint32_t>(crc);
}

struct Header {
  Checkpoint checkpoint;             // without the tensors' values
  std::vector<std::uint64_t> bytes;  // per tensor
};

Header read_header(const JsonCursor& json) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
  Header header;
  (void)json["schema"].integer(1, 1);
  header.checkpoint.next_iteration = json["next_iteration"].integer();
  const JsonCursor settings = json["settings"];
  for (std::size_t i = 0; i < settings.size(); ++i) {
    header.checkpoint.settings.emplace_back(settings.at(i)["name"].text(),
                                            settings.at(i)["value"].text());
  }
  const JsonCursor tensors = json["tensors"];
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    header.checkpoint.tensors.push_back({tensors.at(i)["name"].text(), {}});
    header.bytes.push_back(
        static_cast<std::uint64_t>(tensors.at(i)["bytes"].integer(0, kMostBytes)));
  }
  return header;
}

}  // namespace

std::string Checkpoint::setting(std::string_view name) const {
  const auto it = std::find_if(settings.begin(), settings.end(),
                               [&](const auto& s) { return s.first == name; });
  return it == settings.end() ? std::string() : it->second;
}

std::string serialize(const Checkpoint& checkpoint) {
  Json settings = Json::array();
  for (const auto& [name, value] : checkpoint.settings) {
    settings.push_back({{"name", name}, {"value", value}});
  }
  Json tensors = Json::array();
  std::size_t payload = 0;
  for (const CheckpointTensor& t : checkpoint.tensors) {
    tensors.push_back({{"name", t.name}, {"bytes", t.value.size()}});
    payload += t.value.size();
  }
  const Json json = {{"schema", 1},
                     {"next_iteration", checkpoint.next_iteration},
                     {"settings", std::move(settings)},
                     {"tensors", std::move(tensors)}};
  const std::string header = json.dump();
  std::string out;
  out.reserve(kMagic.size() + kLengthBytes + header.size() + payload + kCheckBytes);
  out += kMagic;
  put_little_endian(out, header.size(), kLengthBytes);
  out += header;
  for (const CheckpointTensor& t : checkpoint.tensors) {
    out.append(reinterpret_cast<const char*>(t.value.data()), t.value.size());
  }
  put_little_endian(out, check_sum(out), kCheckBytes);
  return out;
}

Result<Checkpoint> read_checkpoint(std::string_view content, std::string_view file) {
  const auto bad = [&](std::string_view what) {
    return fail(ErrorCode::bad_input, fmt::format("{}: {}", file, what));
  };
  if (!content.starts_with(kMagic)) return bad("not a tidepool checkpoint (version 1)");
  constexpr std::size_t kFixed = kMagic.size() + kLengthBytes + kCheckBytes;
  if (content.size() < kFixed) return bad("truncated: the file ends in its first bytes");
  const std::string_view body = content.substr(0, content.size() - kCheckBytes);
  const std::uint64_t header_bytes = get_little_endian(content.substr(kMagic.size()), kLengthBytes);
  if (header_bytes > content.size() - kFixed) return bad("truncated: the file ends in its header");
  const std::string_view text = content.substr(kMagic.size() + kLengthBytes, header_bytes);
  auto header = read_json(text, file, read_header);
  if (!header) return fail(header.error());

  std::string_view rest = body.substr(kMagic.size() + kLengthBytes + header_bytes);
  for (std::size_t i = 0; i < header->bytes.size(); ++i) {
    CheckpointTensor& tensor = header->checkpoint.tensors[i];
    if (header->bytes[i] > rest.size()) {
      return bad(fmt::format("truncated: tensor '{}' has {} B, the file {} more", tensor.name,
                             header->bytes[i], rest.size()));
    }
    tensor.value.resize(header->bytes[i]);
    if (!tensor.value.empty()) std::memcpy(tensor.value.data(), rest.data(), tensor.value.size());
    rest.remove_prefix(header->bytes[i]);
  }
  if (!rest.empty()) return bad(fmt::format("{} B follow the last tensor", rest.size()));
  if (get_little_endian(content.substr(body.size()), kCheckBytes) != check_sum(body)) {
    return bad("damaged: the check sum does not match");
  }
  return std::move(header->checkpoint);
}

}  // namespace tidepool::nn
