//===- plan_names.h - What all stages of a plan share -----------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_PLAN_NAMES_H
#define MTPLAN_CODEGEN_PLAN_NAMES_H

#include <map>
#include <string>

#include "ir/interpret/ranks.h"
#include "ir/mtp.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Numbers the process groups, channels and streams of a plan while it is
/// written.
class PlanNames {
public:
  PlanNames(mlir::ModuleOp theModule, runtime::Plan &thePlan);

  /// Returns the number of the group of all ranks that differ only along
  /// `axis`, or only of those at the places in `among`.
  int groupOver(llvm::StringRef axis, llvm::ArrayRef<std::int64_t> among);
  int channelOf(llvm::StringRef label);
  /// Returns the number of a stream among ir::kStreams.
  int streamOf(llvm::StringRef name);
  /// Writes Plan::streams, those that are used, and renumbers the streams of
  /// all instructions accordingly.
  void writeStreams();

  mlir::ModuleOp module;
  ir::MeshView mesh;
  runtime::Plan &plan;

private:
  std::map<std::string, int> groups, channels;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_PLAN_NAMES_H
