// A global operator new that a pool serves, in all tests of this program while one asks for it.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "session/fixed_pool.h"

namespace {

std::atomic<tidepool::FixedPool*> g_pool = nullptr;

void* allocated(std::size_t bytes) {
  const std::size_t some = bytes == 0 ? 1 : bytes;
  tidepool::FixedPool* const pool = g_pool;
  void* const address =
      pool == nullptr ? std::malloc(some) : pool->allocate(static_cast<tidepool::Bytes>(some));
  if (address == nullptr) throw std::bad_alloc();
  return address;
}

void freed(void* address) {
  tidepool::FixedPool* const pool = g_pool;
  if (pool != nullptr && pool->contains(address)) {
    pool->free(address);
  } else {
    std::free(address);
  }
}

}  // namespace

void* operator new(std::size_t bytes) { return allocated(bytes); }
void operator delete(void* address) noexcept { freed(address); }
void operator delete(void* address, std::size_t) noexcept { freed(address); }

namespace tidepool::testing {
namespace {

/// Regression: the pool's own containers asked it for memory in the middle of a call, for ever.
TEST(FixedPoolNew, ServesAGlobalOperatorNew) {
  FixedPool pool({.budget = Bytes{64} << 20});
  std::size_t characters = 0;
  g_pool = &pool;
  for (int i = 0; i < 50; ++i) {
    std::vector<std::string> texts;
    for (std::size_t k = 0; k < 100; ++k) texts.emplace_back(100 + k * 37, 'x');
    for (const std::string& text : texts) characters += text.size();
  }
  const FixedPoolReport report = pool.report();
  g_pool = nullptr;
  EXPECT_EQ(characters, 50U * (100U * 100U + 37U * 4950U));
  EXPECT_GT(report.served, 3000) << "the iteration is found";
  EXPECT_GT(report.iterations, 30);
}

}  // namespace
}  // namespace tidepool::testing
