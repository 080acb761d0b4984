//===- run_row.h - Published training runs ----------------------*- C++ -*-===//
//
// A CSV of measured runs has a row per run: model, machine, configuration, and
// the time of a step or the peak of memory. Empty cells are unknown. The row
// determines the machine file and the software file of the run without regard
// to what was measured.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_RUNS_RUN_ROW_H
#define MTPLAN_TOOLS_RUNS_RUN_ROW_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/machine/software_json.h"

namespace mtplan::tools {

struct RunRow {
  std::string id, source, hardware, model, recompute, precision, notes;
  std::int64_t gpus = 1;
  std::optional<std::int64_t> gpusPerNode;
  /// `intraNodeGBps` is the bandwidth between a device and its node in GB/s,
  /// summed over both directions. `interNodeGBps` is the bandwidth between a
  /// node and the network in GB/s, in one direction.
  std::optional<double> intraNodeGBps, interNodeGBps;
  std::optional<double> parametersB;
  std::int64_t layers = 1, hidden = 1, heads = 1, vocabulary = 1;
  std::optional<std::int64_t> kvHeads, inner;
  std::int64_t sequence = 1, globalBatch = 1;
  std::optional<std::int64_t> microBatch;
  std::int64_t tp = 1, pp = 1, cp = 1, chunks = 1;
  std::optional<std::int64_t> dp;
  double experts = 0; ///< per layer; 0 or 1: a dense model
  int zeroStage = 0;
  bool sequenceParallel = false;
  std::optional<bool> flashAttention;
  double stepSeconds = 0.0; ///< 0: not measured
  double peakGiB = 0.0;     ///< of one GPU; 0: not measured
  std::string memoryKind;   ///< which bytes `peakGiB` counts; "": unknown
  /// Is the first needed column without a value; "": none is missing.
  std::string missing;

  bool notesHave(const char *words) const {
    return notes.find(words) != std::string::npos;
  }
  bool sourceHas(const char *words) const {
    return source.find(words) != std::string::npos;
  }
};

/// Reads rows in the file's order. Columns may be in any order; unknown columns
/// are ignored. Errors have the form "line N: column: what". A row needs a step
/// time or a peak of memory.
std::vector<RunRow> readRows(const std::string &text,
                             std::vector<std::string> &errors);

/// Holds a machine preset, with the network that the row states.
struct FoundMachine {
  std::string preset;
  planner::Machine machine;
};

/// Returns nothing if no preset describes the hardware; `error` then names the
/// nearest preset.
/// \param given  a preset or file that describes the hardware instead, or empty
/// \throws MachineError if `given` is no valid machine
std::optional<FoundMachine> machineOf(const RunRow &row, std::string &error,
                                      const std::string &given = {});

struct FoundSoftware {
  std::string preset;
  planner::Software software;
  bool assumed = false; ///< chosen by the options
};

/// Chooses the preset by the row's source or, if the source names no software,
/// by the row's options.
FoundSoftware softwareOf(const RunRow &row, const planner::Machine &machine);

/// Returns whether the row states that reductions of gradients do not overlap
/// backward.
bool reducesAfterBackward(const RunRow &row);

/// Names what is measured of a run, and predicted.
enum class Quantity : std::uint8_t {
  stepTime,  ///< seconds
  peakMemory ///< GiB
};

/// Returns what was measured of the run, or 0.
double measuredOf(const RunRow &row, Quantity quantity);

/// Returns the reason why the row's quantity cannot be compared with a
/// prediction, or "". Possible reasons are a missing fact, other work in the
/// measured time, a model with experts, and a run that its authors call a slow
/// baseline.
std::string exclusionOf(const RunRow &row, Quantity quantity);

/// Returns the stated micro-batch or, without a pipeline, all samples of a
/// replica.
std::int64_t microBatchOf(const RunRow &row);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUNS_RUN_ROW_H
