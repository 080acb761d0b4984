//===- run_data.h - The samples of a run, and `mtrun data` ------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_RUN_DATA_H
#define MTPLAN_TOOLS_RUN_RUN_DATA_H

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/communicator/communicator.h"
#include "runtime/data/step_samples.h"
#include "runtime/executor/step_data.h"
#include "tools/run/run_flags.h"

namespace CLI {
class App;
}

namespace mtplan::tools {

/// Returns the files to which the name `data` may refer, including
/// Megatron-LM's .bin and .idx files. Returns no files for synthetic data.
std::vector<std::string> filesOf(const std::string &data);

struct DataIdentity {
  std::string content; ///< "text, 93827 bytes, xxh128 ..."
  std::string shown;   ///< the name of the file and `content`, for messages
};

class RunData {
public:
  /// \param ranksHere  number of ranks of this process
  /// \throws DataError, BadInput
  RunData(const runtime::Plan &thePlan, const RunFlags &theFlags,
          int ranksHere);

  /// Starts the run after `steps` steps, which drew `samples` samples. Every
  /// rank of this process calls begin() once, before the first step.
  void begin(std::int64_t steps, std::int64_t samples);
  /// Steps count from 1.
  std::unique_ptr<runtime::StepData> trained(std::int64_t step,
                                             runtime::World &world);

  /// Steps count from 1, and may be in any order.
  std::unique_ptr<runtime::StepData> validated(std::int64_t step);
  /// Returns the smaller of the requested number and the number of full batches
  /// of an epoch, but at least 1.
  std::int64_t validationSteps() const { return validSteps; }

  /// Wakes all ranks that wait for data, after a failure.
  void stop();

  /// The first call reads all bytes of the files. `content` is equal on ranks
  /// that read equal bytes in the same order.
  const DataIdentity &trainedIdentity();
  const DataIdentity &validatedIdentity();
  /// Returns a text with the number of samples and the first four samples.
  /// Earlier versions stored the checksum of this text in checkpoints instead
  /// of digests of data.
  std::string firstSamples() const;

private:
  void openTrained();
  void openValidated();
  std::shared_ptr<const runtime::Dataset>
  open(const std::string &path, const runtime::Objective &objective,
       std::int64_t samples);

  const runtime::Plan &plan;
  const RunFlags &flags;
  const int takers; ///< ranks of this process
  std::shared_ptr<const runtime::Dataset> trainedSet, validatedSet;
  std::optional<DataIdentity> trainedIs, validatedIs;
  std::shared_ptr<runtime::StepReader> reader; ///< null: synthetic
  std::unique_ptr<runtime::Prefetcher>
      prefetcher; ///< reads from `reader`; set by begin()
  bool begun = false;
  std::int64_t samplesBefore = 0, stepsBefore = 0; ///< of earlier runs

  std::int64_t validSteps;
  std::unique_ptr<runtime::StepReader>
      validReader; ///< null: synthetic, or no validation
  std::mutex mutex;
  /// The ranks of a process share the samples of a validation step, because
  /// they reach the step at about the same time.
  std::map<std::int64_t, std::weak_ptr<const runtime::StepSamples>> shared;
};

struct DataFlags {
  std::string file, format, to;
  std::string plan; ///< a folder that `mtplan -o` wrote, or its plan.json
  std::optional<std::int64_t> sequence, vocabulary;
  std::int64_t steps = 100;
  std::uint64_t seed = 1234;
};

CLI::App *describeData(CLI::App &app, DataFlags &flags);

/// \throws runtime::DataError, or BadInput
std::string runData(const CLI::App &data, const DataFlags &flags);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_RUN_DATA_H
