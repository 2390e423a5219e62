// Runs tests on the CUDA stand-in: a test that breaks one of CUDA's rules fails.
#include <gtest/gtest.h>

#include "cuda_standin/standin.h"

namespace {

class RulesAreKept : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo& /*test*/) override {
    for (const std::string& violation : standin::take_violations()) {
      ADD_FAILURE() << "CUDA's rules: " << violation;
    }
    standin::forget_failures();
  }
};

}  // namespace

int main(int argc, char** argv) {
#ifdef STANDIN_TEST_GPUS
  standin::behaviour().gpus = STANDIN_TEST_GPUS;
#endif
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::UnitTest::GetInstance()->listeners().Append(new RulesAreKept);
  return RUN_ALL_TESTS();
}
