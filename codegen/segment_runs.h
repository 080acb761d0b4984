//===- segment_runs.h - Programs of a segment's runs ------------*- C++ -*-===//
//
// The runs of a segment in one direction share one program, unless a run
// gathers the weights of the next run (`mtp.ahead`). If runs gather ahead, the
// last run has its own program, because the next run is of another segment. A
// further program gathers the weights of the task's first run before that run.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_SEGMENT_RUNS_H
#define MTPLAN_CODEGEN_SEGMENT_RUNS_H

#include <string>
#include <vector>

#include "codegen/instruction_writer.h"

namespace mtplan::codegen {

struct Direction {
  std::vector<Written> ahead; ///< executed by the previous run
  std::vector<Written> own;
};

struct SegmentRuns {
  std::string name;
  std::string direction; ///< ".forward" or ".backward"
  int firstLayer = 0;    ///< index of the first layer in the model
  int count = 1;         ///< number of layers
  const Direction *program = nullptr;
  const SegmentRuns *next = nullptr; ///< the next runs of the task, or null
  bool isFirst = false;              ///< true for the task's first runs

  bool ascends() const { return direction == ".forward"; }
};

/// Holds a program and the schedule entry that runs it. The entry lacks the
/// index of the program and the micro-batch.
struct ScheduledProgram {
  runtime::Program program;
  runtime::ScheduleEntry entry;
};

/// Returns the programs of `runs` in the order in which a task runs them. The
/// list is empty if there are no instructions.
std::vector<ScheduledProgram> programsOf(const SegmentRuns &runs);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SEGMENT_RUNS_H
