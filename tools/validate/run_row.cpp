//===- run_row.cpp - Published training runs ------------------------------===//

#include "tools/validate/run_row.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <map>

namespace mtplan::tools {

namespace {

/// Splits RFC 4180 text into records. A quoted cell may hold commas, line ends
/// and doubled quotes.
class Cutter {
public:
  explicit Cutter(const std::string &all) : text(all) {}

  bool next(std::vector<std::string> &cells) {
    cells.clear();
    if (at >= text.size())
      return false;
    startLine = line;
    std::string cell;
    bool quoted = false;
    for (; at < text.size(); ++at) {
      char c = text[at];
      line += c == '\n';
      if (c == '"' && quoted && at + 1 < text.size() && text[at + 1] == '"') {
        cell += text[++at];
      } else if (c == '"') {
        quoted = !quoted;
      } else if (quoted || (c != ',' && c != '\n' && c != '\r')) {
        cell += c;
      } else if (c == ',') {
        cells.push_back(std::move(cell));
        cell.clear();
      } else if (c == '\n') {
        ++at;
        break;
      }
    }
    cells.push_back(std::move(cell));
    return true;
  }

  int startLine = 1; ///< first line of the record

private:
  const std::string &text;
  std::size_t at = 0;
  int line = 1;
};

/// The cells of one record, by column. All faults are collected.
class Cells {
public:
  Cells(const std::map<std::string, std::size_t> &where,
        const std::vector<std::string> &record, int lineNumber,
        std::vector<std::string> &findings)
      : columns(where), cells(record), line(lineNumber), errors(findings) {}

  const std::string &text(const char *column) const {
    static const std::string kNothing;
    auto found = columns.find(column);
    return found == columns.end() ? kNothing : cells[found->second];
  }

  std::optional<double> number(const char *column) {
    const std::string &cell = text(column);
    if (cell.empty())
      return std::nullopt;
    double value = 0.0;
    const char *end = cell.data() + cell.size();
    auto [rest, problem] = std::from_chars(cell.data(), end, value);
    if (problem == std::errc{} && rest == end && std::isfinite(value) &&
        value >= 0.0)
      return value;
    error(column, "must be a number of at least 0, but is \"" + cell + '"');
    return std::nullopt;
  }

  std::optional<std::int64_t> count(const char *column) {
    constexpr double kMost = 1e12;
    std::optional<double> value = number(column);
    if (!value)
      return std::nullopt;
    if (*value >= 1 && *value <= kMost && *value == std::floor(*value))
      return static_cast<std::int64_t>(*value);
    error(column,
          "must be a whole number from 1, but is \"" + text(column) + '"');
    return std::nullopt;
  }

  std::int64_t needed(const char *column) {
    std::optional<std::int64_t> value = count(column);
    if (!value && text(column).empty())
      error(column, "is empty");
    return value.value_or(1);
  }

  /// Reads one of two words, or empty.
  std::optional<bool> flag(const char *column) {
    const std::string &cell = text(column);
    if (!cell.empty() && cell != "yes" && cell != "no")
      error(column, "must be yes or no, but is \"" + cell + '"');
    return cell.empty() ? std::nullopt : std::optional<bool>(cell == "yes");
  }

  void error(const char *column, const std::string &what) {
    errors.push_back("line " + std::to_string(line) + ": " + column + ": " +
                     what);
  }

private:
  const std::map<std::string, std::size_t> &columns;
  const std::vector<std::string> &cells;
  int line;
  std::vector<std::string> &errors;
};

RunRow rowOf(Cells &cells) {
  RunRow row;
  row.id = cells.text("id");
  row.source = cells.text("source");
  row.hardware = cells.text("hardware");
  row.model = cells.text("model_name");
  row.recompute = cells.text("recompute");
  row.precision = cells.text("precision");
  row.notes = cells.text("notes");
  row.gpus = cells.needed("gpus");
  row.gpusPerNode = cells.count("gpus_per_node");
  row.intraNodeGBps = cells.number("intra_node_bw_GBps");
  row.interNodeGBps = cells.number("inter_node_bw_GBps_per_node");
  row.parametersB = cells.number("params_B");
  row.layers = cells.needed("layers");
  row.hidden = cells.needed("hidden");
  row.heads = cells.needed("heads");
  row.kvHeads = cells.count("kv_heads");
  row.inner = cells.count("ffn_hidden");
  row.vocabulary = cells.needed("vocab");
  row.sequence = cells.needed("seq_len");
  row.globalBatch = cells.needed("global_batch");
  row.microBatch = cells.count("micro_batch");
  row.tp = cells.count("tp").value_or(1);
  row.pp = cells.count("pp").value_or(1);
  row.cp = cells.count("cp").value_or(1);
  row.chunks = cells.count("interleave_chunks").value_or(1);
  row.dp = cells.count("dp");
  double zero = cells.number("zero_stage").value_or(0);
  if (zero > 3 || zero != std::floor(zero))
    cells.error("zero_stage", "must be 0, 1, 2 or 3");
  else
    row.zeroStage = static_cast<int>(zero);
  row.sequenceParallel = cells.flag("sequence_parallel").value_or(false);
  row.flashAttention = cells.flag("flash_attention");
  row.stepSeconds = cells.number("step_time_s").value_or(0.0);
  if (row.stepSeconds <= 0.0)
    cells.error("step_time_s", "must be above 0");
  return row;
}

constexpr const char *kNeeded[] = {
    "id",     "source", "hardware", "gpus",    "model_name",   "layers",
    "hidden", "heads",  "vocab",    "seq_len", "global_batch", "step_time_s"};

} // namespace

std::vector<RunRow> readRows(const std::string &text,
                             std::vector<std::string> &errors) {
  std::vector<RunRow> rows;
  Cutter cutter(text);
  std::vector<std::string> record;
  std::map<std::string, std::size_t> columns;
  if (cutter.next(record))
    for (std::size_t i = 0; i < record.size(); ++i)
      columns.emplace(record[i], i);
  for (const char *name : kNeeded)
    if (!columns.contains(name))
      errors.push_back(std::string("line 1: there is no column ") + name);
  if (!errors.empty())
    return rows;
  const std::size_t width = record.size();
  while (cutter.next(record)) {
    if (record.size() == 1 && record[0].empty())
      continue;
    if (record.size() != width) {
      errors.push_back("line " + std::to_string(cutter.startLine) + ": has " +
                       std::to_string(record.size()) + " cells, the header " +
                       std::to_string(width));
      continue;
    }
    std::size_t before = errors.size();
    Cells cells(columns, record, cutter.startLine, errors);
    RunRow row = rowOf(cells);
    if (errors.size() == before)
      rows.push_back(std::move(row));
  }
  return rows;
}

} // namespace mtplan::tools
