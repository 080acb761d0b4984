//===- logits.h - Captures the logits of a plan -----------------*- C++ -*-===//
//
// A plan only trains and validates, and no instruction outputs its logits. A
// backend in front of the real one copies the input of the first kernel of the
// loss. The shards of all ranks and micro-batches are combined by their
// positions.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EXECUTABLE_PARITY_LOGITS_H
#define MTPLAN_TESTS_EXECUTABLE_PARITY_LOGITS_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/executor/rank_executor.h"
#include "tests/executable/run_plan.h"

namespace mtplan {

namespace runtime {
struct StepSamples;
}

/// Holds the logits of all samples as [samples][positions][vocabulary].
struct Logits {
  std::int64_t positions = 0, vocabulary = 0;
  std::int64_t ofOneRank = 0; ///< number of tokens of the vocabulary per rank
  std::vector<double> elements;
};

/// Holds samples and expected logits of a folder of tests/parity/files.
struct LogitsGolden {
  std::shared_ptr<const runtime::StepSamples> samples;
  Logits logits; ///< expected logits, without padding
};
LogitsGolden readLogitsGolden(const std::string &file);

/// Sets the weights of a rank. All ranks call it together.
using FillWeights =
    std::function<void(runtime::World &world, runtime::RankExecutor &rank)>;

/// Returns the logits of an evaluation with one thread per rank, including the
/// padding columns of the vocabulary. The test fails if ranks differ in an
/// element, or if no rank has it.
Logits logitsOf(const runtime::Plan &plan,
                const std::shared_ptr<const runtime::StepSamples> &samples,
                MakeBackend makeBackend, const FillWeights &fill);

/// Returns the largest difference, relative to the largest element of
/// `expected`; ignores the padding of `made`.
double apart(const Logits &made, const Logits &expected);

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_PARITY_LOGITS_H
