#include "device/cuda/host_calls.h"

#include <cstring>

namespace tidepool::cuda {
namespace {

void copy(const HostCall& c) {
  if (c.file == nullptr) {
    std::memcpy(c.to, c.from, static_cast<std::size_t>(c.bytes));
  } else if (c.to == nullptr) {
    c.file->write(c.file_offset, c.from, c.bytes, c.what);
  } else {
    c.file->read(c.file_offset, c.to, c.bytes, c.what);
  }
}

}  // namespace

void HostCall::set_copy(const HostMemory& host, Location destination, Location source,
                        Bytes count) {
  const auto address = [&](Location place) -> std::byte* {
    if (place.space == host.space) return host.arena + place.offset;
    file = host.file;
    file_offset = place.offset;
    return nullptr;
  };
  to = address(destination);
  from = address(source);
  bytes = count;
}

HostCall* HostCalls::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    all_.emplace_back();
    free_.reserve(all_.size());
    return &all_.back();
  }
  HostCall* call = free_.back();
  free_.pop_back();
  return call;
}

void HostCalls::give_back(HostCall* call) {
  const std::lock_guard lock(mutex_);
  free_.push_back(call);
}

Graph::~Graph() {
  if (executable != nullptr) (void)cudaGraphExecDestroy(executable);
}

void CUDART_CB run_host_call(void* call) {
  auto* c = static_cast<HostCall*>(call);
  c->failure->run(
      [&] {
        if (c->work.run == nullptr) {
          copy(*c);
        } else {
          const std::int64_t base = c->graph == nullptr ? 0 : c->graph->argument;
          c->work.run(c->work.context, base + c->work.argument, nullptr);
        }
      },
      "cuda: host work failed with an unknown exception");
  if (c->pool != nullptr) c->pool->give_back(c);
}

void CUDART_CB start_graph(void* graph) {
  auto& g = *static_cast<Graph*>(graph);
  const std::lock_guard lock(g.mutex);
  g.argument = g.launches.front();
  g.launches.pop_front();
}

}  // namespace tidepool::cuda
