#include "nn/state_store.h"

#include <cassert>
#include <cstring>
#include <stdexcept>

#include "base/at.h"

namespace tidepool::nn {
namespace {

/// Each value starts a page of its own, so that dropping one's pages costs no other's.
constexpr Bytes kStatePage = 4096;

}  // namespace

StateStore::StateStore(std::vector<Bytes> bytes) : values_(bytes.size()) {
  Bytes end = 0;
  for (std::size_t t = 0; t < bytes.size(); ++t) {
    values_[t].bytes = bytes[t];
    values_[t].offset = end;
    end += align_up(bytes[t], kStatePage);
  }
  file_bytes_ = end;
}

Result<void> StateStore::use_folder(const std::string& folder) {
  auto file = UnlinkedFile::create(folder);
  if (!file) return fail(file.error());
  if (auto room = file->reserve(file_bytes_); !room) {
    room.error().message += " (for weights and optimizer state outside of iterations)";
    return room;
  }
  file_ = std::move(*file);
  return {};
}

Bytes StateStore::bytes(TensorId tensor) const { return values_[at(tensor)].bytes; }

bool StateStore::has(TensorId tensor) const { return values_[at(tensor)].there; }

void StateStore::read(TensorId tensor, Bytes offset, std::span<std::byte> to) const {
  const Value& value = values_[at(tensor)];
  assert(value.there && offset + static_cast<Bytes>(to.size()) <= value.bytes);
  if (!file_) {
    if (!to.empty()) std::memcpy(to.data(), value.memory.data() + offset, to.size());
  } else if (auto read = file_->read(value.offset + offset, to); !read) {
    throw std::runtime_error(read.error().message);
  }
}

void StateStore::write(TensorId tensor, Bytes offset, std::span<const std::byte> from) {
  Value& value = values_[at(tensor)];
  assert(offset + static_cast<Bytes>(from.size()) <= value.bytes);
  if (!file_) {
    value.memory.resize(static_cast<std::size_t>(value.bytes));
    if (!from.empty()) std::memcpy(value.memory.data() + offset, from.data(), from.size());
  } else if (auto written = file_->write(value.offset + offset, from); !written) {
    throw std::runtime_error(written.error().message);
  }
  value.there = true;
}

void StateStore::release(TensorId tensor) {
  if (file_) return;
  Value& value = values_[at(tensor)];
  value.there = false;
  value.memory = {};
}

}  // namespace tidepool::nn
