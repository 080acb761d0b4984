//===- collective_rows.h - Measured collectives beside the model -*- C++
//-*-===//
//
// Reads a table of measured all-reduces and says what the model makes of each.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_COLLECTIVE_ROWS_H
#define MTPLAN_TOOLS_COLLECTIVE_ROWS_H

#include <string>
#include <vector>

namespace mtplan::tools {

/// One measured all-reduce.
struct CollectiveRow {
  int line = 0; ///< of the table, counted from 1
  std::string source, hardware;
  int gpus = 0;
  double bytes = 0;     ///< one rank's payload
  double measured = 0;  ///< seconds
  double predicted = 0; ///< seconds; 0 if no machine describes the hardware
  double error() const; ///< predicted / measured - 1
};

/// Which machine file or preset describes a table's hardware; empty: none, and
/// `reason` says why.
struct MachineOf {
  std::string hardware, machine, reason;
};

/// Comma-separated text with a header line; fields may be quoted. Columns
/// "hardware", "machine" and "reason".
/// \throws std::runtime_error naming a missing column
std::vector<MachineOf> readMachineMap(const std::string &text);

/// The all_reduce rows of a table, from `least` to `most` bytes, that say how
/// many GPUs took part and how long they took (column time_us, or else
/// busbw_GBps, bus bandwidth as nccl-tests defines it), with what the model
/// predicts. Rows of hardware that `machines` does not name are an error.
/// \throws std::runtime_error
std::vector<CollectiveRow> readRows(const std::string &table,
                                    const std::vector<MachineOf> &machines,
                                    double least, double most);

/// Middle of the absolute errors of the rows that were predicted, the upper of
/// the two middle ones; there must be one.
double medianError(const std::vector<CollectiveRow> &rows);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_COLLECTIVE_ROWS_H
