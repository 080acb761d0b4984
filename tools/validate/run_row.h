//===- run_row.h - Published training runs ----------------------*- C++ -*-===//
//
// A CSV of measured step times has a row per run: model, machine, configuration
// and step time. Empty cells are unknown.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_VALIDATE_RUN_ROW_H
#define MTPLAN_TOOLS_VALIDATE_RUN_ROW_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtplan::tools {

struct RunRow {
  std::string id, source, hardware, model, recompute, precision, notes;
  std::int64_t gpus = 1;
  std::optional<std::int64_t> gpusPerNode;
  /// Bandwidth of a device to its node in both directions, and of a node.
  std::optional<double> intraNodeGBps, interNodeGBps;
  std::optional<double> parametersB;
  std::int64_t layers = 1, hidden = 1, heads = 1, vocabulary = 1;
  std::optional<std::int64_t> kvHeads, inner;
  std::int64_t sequence = 1, globalBatch = 1;
  std::optional<std::int64_t> microBatch;
  std::int64_t tp = 1, pp = 1, cp = 1, chunks = 1;
  std::optional<std::int64_t> dp;
  int zeroStage = 0;
  bool sequenceParallel = false;
  std::optional<bool> flashAttention;
  double stepSeconds = 0.0;

  bool notesHave(const char *words) const {
    return notes.find(words) != std::string::npos;
  }
  bool sourceHas(const char *words) const {
    return source.find(words) != std::string::npos;
  }
};

/// Reads rows in the file's order. Columns may be in any order, and unknown
/// ones are ignored. Faults become errors, "line N: column: what".
std::vector<RunRow> readRows(const std::string &text,
                             std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_RUN_ROW_H
