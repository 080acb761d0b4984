//===- run_data.h - Where a run's samples come from -------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_RUN_DATA_H
#define MTPLAN_TOOLS_RUN_RUN_DATA_H

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/communicator/communicator.h"
#include "runtime/data/prefetcher.h"
#include "runtime/executor/step_data.h"
#include "tools/run/run_flags.h"

namespace mtplan::tools {

/// The files that `data` may stand for: Megatron-LM's are two, and what is
/// synthetic is none.
std::vector<std::string> filesOf(const std::string &data);

class RunData {
public:
  /// \param takers  ranks of this process
  /// \throws DataError, BadInput
  RunData(const runtime::Plan &thePlan, const RunFlags &theFlags,
          int itsTakers);

  /// Every rank of this process says once, before the first step, where the
  /// run begins: behind so many steps that drew so many samples.
  void begin(std::int64_t steps, std::int64_t samples);
  /// Steps count from 1. For the ranks of this process.
  std::unique_ptr<runtime::StepData> trained(std::int64_t step,
                                             runtime::World &world);

  /// Of what is not trained on; steps from 1, in any order.
  std::unique_ptr<runtime::StepData> validated(std::int64_t step);
  /// As many as were asked for, but none with a sample for a second time.
  std::int64_t validationSteps() const { return validSteps; }

  /// Lets go all who wait for data: the run has failed.
  void stop();

  /// To compare with what other processes read.
  const std::string &fingerprint() const { return print; }
  /// The same of what is trained on alone.
  const std::string &trainedPrint() const { return printOfTrained; }

private:
  void openTrained();
  void openValidated();
  std::shared_ptr<const runtime::Dataset>
  open(const std::string &path, const runtime::Objective &objective,
       std::int64_t samples);

  const runtime::Plan &plan;
  const RunFlags &flags;
  const int takers;
  std::string print, printOfTrained;
  std::shared_ptr<runtime::StepReader> reader;     ///< null: synthetic
  std::unique_ptr<runtime::Prefetcher> prefetcher; ///< of it, once begun

  std::int64_t validSteps;
  std::unique_ptr<runtime::StepReader> validReader; ///< null: synthetic, none
  std::mutex mutex;
  /// Ranks of one process take the same steps at about the same time.
  std::map<std::int64_t, std::weak_ptr<const runtime::StepSamples>> shared;
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_RUN_DATA_H
