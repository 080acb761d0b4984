//===- unlike_devices_test.cpp - Ranks whose GPUs are of two kinds --------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/emulator/runs/small_plan.h"
#include "tests/emulator/streams.h"
#include "tests/executable/run_process.h"

namespace mtplan {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(UnlikeDevices, AreSaidOnceBeforeTheyTrain) {
  const TestFolder folder;
  const std::string plan = compileTwoReplicas(folder, {"--precision", "fp32"});
  const auto trained = [&] {
    return runHere({plan, "--data", kText, "--backend", "cuda", "--ranks-as",
                    "threads", "--steps", "1"});
  };
  emulator::setDevices(2);
  const Ran alike = trained();
  emulator::nameDevices({"older", "newer"});
  const Ran unlike = trained();
  emulator::nameDevices({});
  emulator::setDevices(1);
  ASSERT_EQ(alike.code, 0) << alike.err;
  EXPECT_THAT(alike.err, IsEmpty());
  ASSERT_EQ(unlike.code, 0) << unlike.err;
  const std::string said = "warning: rank 1 has another device or other "
                           "libraries than rank 0 (rank 0: older; CUDA ";
  EXPECT_THAT(unlike.err, HasSubstr(said));
  EXPECT_THAT(unlike.err, HasSubstr(", cuBLASLt "));
  EXPECT_EQ(unlike.err.find(said), unlike.err.rfind(said));
}

} // namespace
} // namespace mtplan
