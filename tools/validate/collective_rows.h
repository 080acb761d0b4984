//===- collective_rows.h - Measured and predicted collectives ---*- C++ -*-===//

#ifndef MTPLAN_TOOLS_VALIDATE_COLLECTIVE_ROWS_H
#define MTPLAN_TOOLS_VALIDATE_COLLECTIVE_ROWS_H

#include <string>
#include <vector>

namespace mtplan::tools {

struct CollectiveRow {
  int line = 0; ///< line of the table, from 1
  std::string source, hardware;
  int gpus = 0;
  double bytes = 0;     ///< payload of one rank
  double measured = 0;  ///< seconds
  double predicted = 0; ///< seconds; 0 if no machine describes the hardware
  double error() const; ///< predicted / measured - 1
};

/// Names the machine file or preset for a table's hardware. If there is none,
/// `machine` is empty and `reason` says why.
struct MachineOf {
  std::string hardware, machine, reason;
};

/// Reads comma-separated text with the columns "hardware", "machine" and
/// "reason". Fields may be quoted.
/// \throws std::runtime_error naming a missing column
std::vector<MachineOf> readMachineMap(const std::string &text);

/// Reads the all_reduce rows with `least` to `most` bytes, at least two GPUs,
/// and a time. The time is in the column time_us, or follows from the column
/// busbw_GBps, the bus bandwidth of nccl-tests. Predicts each row whose
/// hardware has a machine. Hardware that is not in `machines` is an error.
/// \throws std::runtime_error
std::vector<CollectiveRow> readRows(const std::string &table,
                                    const std::vector<MachineOf> &machines,
                                    double least, double most);

/// Returns the median of the absolute errors of predicted rows, or the upper of
/// two middle errors. There must be a predicted row.
double medianError(const std::vector<CollectiveRow> &rows);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_COLLECTIVE_ROWS_H
