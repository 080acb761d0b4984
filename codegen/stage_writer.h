//===- stage_writer.h - One stage's part of an executable plan --*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_STAGE_WRITER_H
#define MTPLAN_CODEGEN_STAGE_WRITER_H

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ir/interpret/mesh_view.h"
#include "ir/mtp.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// What all stages of a plan share while it is written.
class PlanNames {
public:
  PlanNames(mlir::ModuleOp theModule, runtime::Plan &thePlan);

  /// Number of the group of all ranks that differ only along `axis`, or, of
  /// those, only the ones with these places.
  int groupOver(llvm::StringRef axis, llvm::ArrayRef<std::int64_t> among);
  int channelOf(llvm::StringRef label);

  mlir::ModuleOp module;
  ir::MeshView mesh;
  runtime::Plan &plan;

private:
  std::map<std::string, int> groups, channels;
};

class StageWriter {
public:
  StageWriter(PlanNames &planNames, std::int64_t stageNumber)
      : names(planNames), number(stageNumber) {}

  /// \param tasks     of the stage, as in kTasksAttrName
  /// \param segments  that it holds, in module order
  mlir::LogicalResult run(llvm::ArrayRef<std::int64_t> tasks,
                          const std::vector<ir::SegmentOp> &segments,
                          ir::UpdateOp update);

  runtime::Stage stage;

private:
  using Split = std::vector<std::vector<int>>;

  // Tensors, stage_writer.cpp.
  int arenaOf(llvm::StringRef name);
  int bufferOf(ir::PlaceAttr place, const std::string &name);
  runtime::Tensor tensorAt(ir::PlaceAttr place, mlir::Type type,
                           const std::string &name, Split split = {});
  mlir::FailureOr<ir::PlaceAttr> placeOf(mlir::Value value);
  mlir::LogicalResult addTensors(mlir::ValueRange values,
                                 const std::vector<Split> &splits,
                                 const std::string &name,
                                 std::vector<runtime::Tensor> &tensors);
  Split splitBy(ir::LayoutAttr layout) const;

  // Instructions, instructions.cpp.
  mlir::LogicalResult write(mlir::Operation *op, runtime::Program &program);
  mlir::LogicalResult writeKernel(mlir::Operation *op,
                                  runtime::Instruction &instruction);
  bool writeCollective(mlir::Operation *op, runtime::Instruction &instruction);
  mlir::LogicalResult writeAccumulated(ir::AccumulatedOp op,
                                       runtime::Program &program);
  mlir::LogicalResult writeAccumulate(ir::AccumulateOp op,
                                      runtime::Program &program);
  mlir::LogicalResult writeAdamw(ir::AdamwOp op, runtime::Program &program);
  mlir::FailureOr<int> addProgram(const std::string &name, mlir::Block &block,
                                  std::int64_t firstCopy);

  // The update, update_writer.cpp.
  mlir::LogicalResult writeUpdate(ir::UpdateOp update);
  ir::ParameterOp readOf(ir::AdamwOp op);
  runtime::Tensor fromCopy(runtime::Tensor tensor, std::int64_t first) const;
  mlir::LogicalResult addParameter(ir::AdamwOp op);

  PlanNames &names;
  std::int64_t number;
  std::map<std::string, int> arenas;
  std::map<std::tuple<int, std::int64_t, std::int64_t, std::int64_t,
                      std::int64_t, std::int64_t, std::int64_t>,
           int>
      buffers;
  /// By program and instruction, what segments' instructions were written for.
  std::vector<std::vector<mlir::Operation *>> operators;
  /// By label and, if it has a `*`, segment: a read of it.
  std::map<std::string, std::vector<ir::ParameterOp>> reads;
};

/// What an attribute of an operator says to a kernel, if anything.
std::vector<runtime::Setting> settingsOf(mlir::Operation *op);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_STAGE_WRITER_H
