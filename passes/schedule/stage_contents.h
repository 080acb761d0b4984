//===- stage_contents.h - What a stage holds and does -----------*- C++ -*-===//

#ifndef MTPLAN_PASSES_SCHEDULE_STAGE_CONTENTS_H
#define MTPLAN_PASSES_SCHEDULE_STAGE_CONTENTS_H

#include <vector>

#include "ir/interpret/interpret.h"
#include "ir/mtp.h"

namespace mtplan::passes {

/// What one stage holds, of a partitioned module.
struct StageContents {
  std::vector<ir::SegmentOp> segments; ///< in module order
  ir::UpdateOp update;                 ///< may be null
  std::vector<ir::StageTask> tasks;
};

/// Returns the contents by stage, none if `module` has no tasks.
std::vector<StageContents> contentsOfStages(mlir::ModuleOp module);

/// Whether labels of the segment's parameters have a `*`, be there one copy or
/// many.
bool isOfCopies(ir::SegmentOp segment);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_STAGE_CONTENTS_H
