//===- metrics_test.cpp - Lines and events of a step ----------------------===//

#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/metrics/step_record.h"
#include "tests/runtime/data/data_files.h"

namespace mtplan::runtime {
namespace {

/// Returns a step of 4 ranks, which takes half a second for 8192 tokens and 2
/// TFLOP. A rank thus has 1 TFLOP/s; its peak is 4 TFLOP/s.
StepRecord example() {
  StepRecord record;
  record.step = 20;
  record.steps = 200;
  record.loss = 3.25;
  record.gradientNorm = 0.75;
  record.learningRate = 3e-4;
  record.tokens = 8192;
  record.seconds = 0.5;
  record.modelFlops = 2e12;
  record.ranks = 4;
  record.peakFlops = 4e12;
  record.memoryBytes = std::int64_t{812} << 20;
  return record;
}

TEST(ProgressLine, SaysWhatIsKnown) {
  EXPECT_EQ(progressLine(example()),
            "step  20/200  loss 3.2500  norm 0.750  lr 3.00e-04  16.4k tokens/s"
            "  1.00 TFLOP/s a rank (25 %)  812 MiB  1:30 left");
  StepRecord last;
  last.step = last.steps = 7;
  last.loss = 2;
  EXPECT_EQ(progressLine(last),
            "step 7/7  loss 2.0000  norm 0.000  lr 0.00e+00");
}

TEST(ProgressLine, SaysWhatWasSkippedAndValidated) {
  StepRecord record = example();
  record.lossScale = 65536;
  record.skipped = true;
  record.validationLoss = 0.0;
  EXPECT_THAT(
      progressLine(record),
      testing::AllOf(testing::HasSubstr("  scale 65536  skipped (overflow)  "),
                     testing::EndsWith("  validation 0.0000 (perplexity 1)")));
}

TEST(ProgressLine, UnitsChangeWhereTheDigitsWouldRunOut) {
  StepRecord record = example();
  record.seconds = 1;
  const auto rate = [&](std::int64_t tokens) {
    record.tokens = tokens;
    const std::string line = progressLine(record);
    const std::size_t end = line.find(" tokens/s");
    return line.substr(line.rfind(' ', end - 1) + 1,
                       end - line.rfind(' ', end - 1) - 1);
  };
  EXPECT_EQ(rate(5), "5.00");
  EXPECT_EQ(rate(999), "999");
  EXPECT_EQ(rate(1000), "1.00k");
  EXPECT_EQ(rate(99999), "100k");
  EXPECT_EQ(rate(999499), "999k");
  EXPECT_EQ(rate(999500), "1.00M");
  record.steps = 20 + 3723;
  record.memoryBytes = std::int64_t{5} << 29;
  EXPECT_THAT(progressLine(record),
              testing::EndsWith("  2.5 GiB  1:02:03 left"));
}

TEST(StepLines, OneObjectWithTheAgreedNames) {
  EXPECT_EQ(jsonLine(example()),
            "{\"step\": 20, \"loss\": 3.25, \"gradient_norm\": 0.75, "
            "\"learning_rate\": 3e-04, \"skipped\": false, \"tokens\": 8192, "
            "\"seconds\": 0.5, \"tokens_per_second\": 16384, "
            "\"flops_per_rank\": 1e+12, \"share_of_peak\": 0.25, "
            "\"memory_bytes\": 851443712, \"version\": 1}\n");
  StepRecord record;
  record.step = 1;
  record.loss = std::numeric_limits<double>::quiet_NaN();
  record.gradientNorm = INFINITY;
  record.lossScale = 65536;
  record.skipped = true;
  record.validationLoss = 0.0;
  EXPECT_EQ(jsonLine(record),
            "{\"step\": 1, \"loss\": null, \"gradient_norm\": null, "
            "\"learning_rate\": 0, \"loss_scale\": 65536, \"skipped\": true, "
            "\"tokens\": 0, \"seconds\": 0, \"tokens_per_second\": 0, "
            "\"validation_loss\": 0, \"perplexity\": 1, \"version\": 1}\n");
}

TEST(StepLines, NumbersReadBackTheSame) {
  StepRecord record;
  record.loss = 0.1 + 0.2;
  EXPECT_THAT(jsonLine(record),
              testing::HasSubstr("\"loss\": 0.30000000000000004,"));
}

TEST(StepLines, AResumedRunWritesItsStepsOnce) {
  TestFolder folder;
  const auto line = [](std::int64_t step) {
    StepRecord record;
    record.step = step;
    return jsonLine(record);
  };
  const std::string path = folder / "metrics.jsonl";
  EXPECT_EQ(cutStepsAfter(path, 5), 0);
  const std::string notOurs = "{\"note\": 99}\n";
  writeFile(path, line(9) + notOurs + line(10) + line(11) + line(12) +
                      line(13).substr(0, 20));
  EXPECT_EQ(cutStepsAfter(path, 10), 3);
  EXPECT_EQ(readFile(path), line(9) + notOurs + line(10));
  EXPECT_EQ(cutStepsAfter(path, 10), 0);
  writeFile(path, line(9) + line(10).substr(0, 9));
  EXPECT_EQ(cutStepsAfter(path, 10), 1);
  EXPECT_EQ(readFile(path), line(9));
}

//===----------------------------------------------------------------------===//
// TensorBoard
//===----------------------------------------------------------------------===//

std::string hexOf(const std::string &bytes) {
  std::string hex;
  for (unsigned char byte : bytes)
    for (int digit : {byte >> 4, byte & 15})
      hex += "0123456789abcdef"[digit];
  return hex;
}

TEST(EventRecords, GoldenBytes) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(hexOf(versionRecord(0)),
            "1800000000000000a37f4b220900000000000000001a0d627261696e2e4576656e"
            "743a32eedf28a3");
  EXPECT_EQ(hexOf(scalarRecord(1.0, 7, "loss", 2.5F)),
            "1a00000000000000129bd82d09000000000000f03f10072a0d0a0b0a046c6f7373"
            "150000204087ccc43d");
}

// 300 is 0b10 0101100. A varint has groups of seven bits, the lowest first.
TEST(EventRecords, StepsOfManyBitsAreVarints) {
  EXPECT_THAT(hexOf(scalarRecord(1.0, 300, "loss", 2.5F)),
              testing::HasSubstr("f03f10ac022a0d"));
}

TEST(EventRecords, AStepIsARecordForEachNumber) {
  StepRecord record;
  record.step = 7;
  record.loss = 2.5;
  EXPECT_EQ(stepRecords(1.0, record),
            scalarRecord(1.0, 7, "loss", 2.5F) +
                scalarRecord(1.0, 7, "gradient_norm", 0) +
                scalarRecord(1.0, 7, "learning_rate", 0) +
                scalarRecord(1.0, 7, "skipped", 0) +
                scalarRecord(1.0, 7, "tokens_per_second", 0));
  EXPECT_EQ(eventFileName(1700000000, "node1", 42),
            "events.out.tfevents.1700000000.node1.42");
}

//===----------------------------------------------------------------------===//
// Memory of this process
//===----------------------------------------------------------------------===//

TEST(ProcessMemory, GrowsByWhatIsTouchedAndRemembersItsPeak) {
  constexpr std::int64_t kBytes = std::int64_t{128} << 20;
  const ProcessMemory before = processMemory();
  EXPECT_GT(before.now, 0);
  {
    const std::vector<char> touched(static_cast<std::size_t>(kBytes), 'x');
    EXPECT_GE(processMemory().now, before.now + kBytes / 2 + touched[0]);
  }
  EXPECT_GE(processMemory().peak, before.now + kBytes / 2);
}

} // namespace
} // namespace mtplan::runtime
