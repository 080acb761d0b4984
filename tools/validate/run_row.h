//===- run_row.h - Published training runs, a row each ----------*- C++ -*-===//
//
// A CSV of measured step times: what was trained on what, how it was shared
// out, how long a step took. Cells that are empty say nothing.
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
  /// Of a device to all others of its node, both directions; of a node.
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

/// Rows in the file's order. Columns may come in any order, further ones are
/// ignored. What cannot be read becomes an error, "line N: column: what".
std::vector<RunRow> readRows(const std::string &text,
                             std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_RUN_ROW_H
