//===- progress_line.h - One step as one line for people --------*- C++ -*-===//
//
//   step  20/200  loss 3.4121  norm 0.912  lr 3.00e-04  41.2k tokens/s
//   1.02 TFLOP/s (34 %)  812 MiB  0:45 left
//
// (on one line). What is unknown is left out. The line is for people; programs
// read the JSON lines (step_lines.h), whose names do not change.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_METRICS_PROGRESS_LINE_H
#define MTPLAN_RUNTIME_METRICS_PROGRESS_LINE_H

#include <string>

#include "runtime/metrics/step_record.h"

namespace mtplan::runtime {

/// Without a line break.
std::string progressLine(const StepRecord &record);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_METRICS_PROGRESS_LINE_H
