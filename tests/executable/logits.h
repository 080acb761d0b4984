//===- logits.h - What a plan hands to its loss -----------------*- C++ -*-===//
//
// A plan only trains and validates: no instruction gives its logits away. What
// a rank's loss reads is seen by a backend that stands before the real one and
// copies what the first kernel of the loss is given; pieces of all ranks and
// micro-batches are put together by where they say that they are.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EXECUTABLE_LOGITS_H
#define MTPLAN_TESTS_EXECUTABLE_LOGITS_H

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

/// [samples, positions, vocabulary]
struct Logits {
  std::int64_t positions = 0, vocabulary = 0;
  std::int64_t ofOneRank = 0; ///< tokens of the vocabulary that a rank has
  std::vector<double> elements;
};

/// A golden of tests/parity/files.
struct LogitsGolden {
  std::shared_ptr<const runtime::StepSamples> samples;
  Logits logits; ///< without padding
};
LogitsGolden readLogitsGolden(const std::string &file);

/// Gives a rank its weights; all ranks call it.
using FillWeights =
    std::function<void(runtime::World &world, runtime::RankExecutor &rank)>;

/// Of an evaluation on a thread a rank, with the columns that pad the
/// vocabulary. A failure of the test if ranks differ in one, or none has it.
Logits logitsOf(const runtime::Plan &plan,
                const std::shared_ptr<const runtime::StepSamples> &samples,
                MakeBackend makeBackend, const FillWeights &fill);

/// The largest difference, relative to the largest of `expected`; padding of
/// `made` is left out.
double apart(const Logits &made, const Logits &expected);

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_LOGITS_H
