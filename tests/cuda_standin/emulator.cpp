#include "cuda_standin/emulator.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "cuda_standin/standin.h"

namespace standin {
namespace {

constexpr unsigned kMostThreads = 1024;
constexpr unsigned kLanes = 32;
constexpr std::size_t kStack = 64 << 10;
constexpr std::size_t kMostShared = 48 << 10;

enum class Waits : std::uint8_t { no, block, warp };

/// Of __builtin_setjmp.
using Place = void* [5];

/// What the scheduler looks at is together: it goes through all of them again and again.
struct Fiber {
  bool done = true;
  bool started = false;
  Waits waits = Waits::no;
  unsigned warp = 0, lane = 0;
  uint3 thread{};
  Place resume{};
  std::unique_ptr<ucontext_t> first = std::make_unique<ucontext_t>();  ///< where it starts
};

struct Warp {
  unsigned arrived = 0, live = 0;
  std::uint64_t values[kLanes] = {};
  std::uint64_t results[kLanes] = {};
};

/// The block that runs. One thread at a time runs kernels.
struct Block {
  std::vector<Fiber> fibers;  ///< kMostThreads are reserved: they stay where they are
  std::vector<Warp> warps{kMostThreads / kLanes};
  Place scheduler{};
  Fiber* current = nullptr;
  const std::function<void()>* body = nullptr;
  ThreadPlace place;
  std::vector<void*> shared;  ///< variables of this block that have been spoilt
  unsigned count = 0, live = 0, at_barrier = 0;
  std::mt19937_64 random{[] {
    const char* seed = std::getenv("STANDIN_SEED");
    return seed == nullptr ? 1ULL : std::strtoull(seed, nullptr, 10);
  }()};
};

Block* const the_block = [] {
  auto* block = new Block;  // outlives everybody's destructors
  block->fibers.reserve(kMostThreads);
  return block;
}();
Block& block() { return *the_block; }

[[gnu::noinline, noreturn]] void jump(Place& to) { __builtin_longjmp(to, 1); }

// Switching by the compiler's setjmp: ucontext's own asks the kernel for the signal mask each time,
// and the C library's mangles what it saves. What these two do not inline is that no local variable
// lives across a switch.
[[gnu::noinline]] void yield() {
  Block& b = block();
  if (__builtin_setjmp(b.current->resume) == 0) jump(b.scheduler);
}

void fiber_main() {
  for (;;) {
    (*block().body)();
    Block& b = block();
    b.current->done = true;
    --b.live;
    --b.warps[b.current->warp].live;
    if (b.at_barrier > 0) violation("a thread ends while others of its block wait for it");
    yield();
  }
}

[[gnu::noinline]] void resume(Fiber& fiber) {
  Block& b = block();
  b.current = &fiber;
  b.place.thread = fiber.thread;
  if (__builtin_setjmp(b.scheduler) != 0) return;
  if (fiber.started) jump(fiber.resume);
  fiber.started = true;
  ::setcontext(fiber.first.get());
}

void add_fiber() {
  ucontext_t& context = *block().fibers.emplace_back().first;
  void* stack = ::mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) std::abort();
  ::getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = kStack;
  ::makecontext(&context, fiber_main, 0);
}

/// What so many fibers from this one on wait for has come.
void release(Waits kind, unsigned first, unsigned count) {
  for (Fiber& fiber : std::span(block().fibers).subspan(first, count)) {
    if (fiber.waits == kind) fiber.waits = Waits::no;
  }
}

/// Visits 0 .. count - 1 once each, from a random place in random steps.
template <class F>
void in_some_order(std::uint64_t count, F visit) {
  Block& b = block();
  std::uint64_t step = b.random() % count + 1;
  while (std::gcd(step, count) != 1) ++step;
  step %= count;
  std::uint64_t at = b.random() % count;
  for (std::uint64_t i = 0; i < count; ++i) {
    visit(at);
    at += step;
    if (at >= count) at -= count;
  }
}

void run_block(const char* name) {
  Block& b = block();
  const dim3& dim = b.place.block_dim;
  const unsigned count = dim.x * dim.y * dim.z;
  while (b.fibers.size() < count) add_fiber();
  for (unsigned warp = 0; warp * kLanes < count; ++warp) {
    b.warps[warp].arrived = b.warps[warp].live = 0;
  }
  for (unsigned i = 0; i < count; ++i) {
    Fiber& fiber = b.fibers[i];
    fiber.done = false;
    fiber.waits = Waits::no;
    fiber.thread = {i % dim.x, i / dim.x % dim.y, i / dim.x / dim.y};
    fiber.warp = i / kLanes;
    fiber.lane = i % kLanes;
    ++b.warps[fiber.warp].live;
  }
  b.live = b.count = count;
  b.at_barrier = 0;
  b.shared.clear();
  while (b.live > 0) {
    bool ran = false;
    in_some_order(count, [&](std::uint64_t i) {
      Fiber& fiber = b.fibers[i];
      if (fiber.done || fiber.waits != Waits::no) return;
      ran = true;
      resume(fiber);
    });
    if (ran) continue;
    violation("%s: a barrier or an exchange that not all threads reach", name);
    std::abort();
  }
}

}  // namespace

const ThreadPlace& place() { return block().place; }
void seed_emulator(std::uint64_t seed) { block().random.seed(seed); }
int lane() { return static_cast<int>(block().current->lane); }

void block_barrier() {
  Block& b = block();
  if (++b.at_barrier == b.live) {
    b.at_barrier = 0;
    release(Waits::block, 0, b.count);
    return;
  }
  b.current->waits = Waits::block;
  yield();
}

namespace {

/// Waits until all lanes have handed over their value; then `values` of the warp are those.
const Warp& gather(std::uint64_t value) {
  Block& b = block();
  Warp& warp = b.warps[b.current->warp];
  if (warp.live != kLanes) violation("an exchange in a warp that is not whole");
  warp.values[b.current->lane] = value;
  if (++warp.arrived == kLanes) {
    warp.arrived = 0;
    // A quick lane may already hand over its next value while others read these.
    std::memcpy(warp.results, warp.values, sizeof warp.values);
    release(Waits::warp, b.current->warp * kLanes, kLanes);
  } else {
    b.current->waits = Waits::warp;
    yield();
  }
  return block().warps[block().current->warp];
}

}  // namespace

std::uint64_t warp_exchange(std::uint64_t value, int source) {
  return gather(value).results[source];
}

bool warp_all(bool value) {
  const Warp& warp = gather(value ? 1 : 0);
  for (const std::uint64_t v : warp.results) {
    if (v == 0) return false;
  }
  return true;
}

void shared_variable(void* start, std::size_t bytes) {
  Block& b = block();
  if (std::find(b.shared.begin(), b.shared.end(), start) != b.shared.end()) return;
  b.shared.push_back(start);
  std::memset(start, static_cast<int>(b.random() & 0xff), bytes);
}

void launch_kernel(dim3 grid, dim3 block_dim, std::size_t shared_bytes, cudaStream_t stream,
                   const char* name, const std::string& identity, std::function<void()> body) {
  const std::uint64_t threads = std::uint64_t{block_dim.x} * block_dim.y * block_dim.z;
  if (threads == 0 || threads > kMostThreads || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
      grid.x > 2147483647U || grid.y > 65535 || grid.z > 65535 || shared_bytes > kMostShared) {
    violation("%s: a launch of %u x %u x %u blocks of %u x %u x %u threads", name, grid.x, grid.y,
              grid.z, block_dim.x, block_dim.y, block_dim.z);
    return;
  }
  first_use(stream, name + (" " + identity));
  enqueue(
      stream,
      [=, body = std::move(body)] {
        Block& b = block();
        b.body = &body;
        b.place.block_dim = block_dim;
        b.place.grid_dim = grid;
        in_some_order(std::uint64_t{grid.x} * grid.y * grid.z, [&](std::uint64_t i) {
          b.place.block = {static_cast<unsigned>(i % grid.x),
                           static_cast<unsigned>(i / grid.x % grid.y),
                           static_cast<unsigned>(i / grid.x / grid.y)};
          run_block(name);
        });
      },
      name);
}

}  // namespace standin
