//===- plan_names.h - Groups, channels and streams of a plan ----*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_PLAN_NAMES_H
#define MTPLAN_CODEGEN_PLAN_NAMES_H

#include <map>
#include <string>

#include "ir/interpret/ranks.h"
#include "ir/mtp.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

class PlanNames {
public:
  PlanNames(mlir::ModuleOp theModule, runtime::Plan &thePlan);

  /// Returns the index, in Plan::groups, of the process group whose ranks
  /// differ only along `axis`. Unless `among` is empty, only ranks whose
  /// coordinate on the axis is in `among` are members.
  int groupOver(llvm::StringRef axis, llvm::ArrayRef<std::int64_t> among);
  int channelOf(llvm::StringRef label);
  /// Returns the index of a stream in ir::kStreams.
  int streamOf(llvm::StringRef name);
  /// Sets Plan::streams to "compute" and the other streams that instructions
  /// run on, and renumbers the streams of all instructions accordingly.
  void writeStreams();

  mlir::ModuleOp module;
  ir::MeshView mesh;
  runtime::Plan &plan;

private:
  std::map<std::string, int> groups, channels;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_PLAN_NAMES_H
