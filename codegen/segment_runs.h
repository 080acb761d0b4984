//===- segment_runs.h - Programs of a segment's runs ------------*- C++ -*-===//
//
// The runs of a segment in one direction share one program, unless a run
// gathers the weights of the next run (`mtp.ahead`). In this case, the last run
// has a program of its own, because another segment follows it, and a further
// program gathers the weights of the task's first run before that run.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_SEGMENT_RUNS_H
#define MTPLAN_CODEGEN_SEGMENT_RUNS_H

#include <string>
#include <vector>

#include "codegen/instruction_writer.h"

namespace mtplan::codegen {

/// Holds the instructions of a segment in one direction.
struct Direction {
  std::vector<Written> ahead; ///< those that the run before executes
  std::vector<Written> own;
};

/// Describes the runs of a segment in one direction of a task.
struct SegmentRuns {
  std::string name;      ///< of the segment
  std::string direction; ///< ".forward" or ".backward"
  int firstLayer = 0;    ///< number in the model
  int count = 1;         ///< layers
  const Direction *program = nullptr;
  const SegmentRuns *next = nullptr; ///< what the task runs then, or null
  bool isFirst = false;              ///< whether the task begins with it

  bool ascends() const { return direction == ".forward"; }
};

/// Holds a program, and the entry that runs it. The entry lacks the index of
/// the program, and the micro-batch.
struct ScheduledProgram {
  runtime::Program program;
  runtime::ScheduleEntry entry;
};

/// Returns the programs of `runs` in the order in which a task runs them; none
/// if there are no instructions.
std::vector<ScheduledProgram> programsOf(const SegmentRuns &runs);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SEGMENT_RUNS_H
