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

/// Holds what all stages of a plan share while it is written.
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

class StageWriter {
public:
  StageWriter(PlanNames &planNames, std::int64_t stageNumber)
      : names(planNames), number(stageNumber) {}

  /// \param tasks     of the stage, as in kTasksAttrName
  /// \param segments  that the stage holds, in module order
  mlir::LogicalResult run(llvm::ArrayRef<std::int64_t> tasks,
                          const std::vector<ir::SegmentOp> &segments,
                          ir::UpdateOp update);

  runtime::Stage stage;

private:
  using Split = std::vector<std::vector<int>>;

  // stage_writer.cpp defines the tensors.
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

  // instructions.cpp defines the instructions.
  mlir::LogicalResult write(mlir::Operation *op, runtime::Program &program);
  mlir::LogicalResult writeAlone(mlir::Operation *op,
                                 runtime::Program &program);
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

  // update_writer.cpp defines the update.
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
  /// Reads of parameters, by label.
  std::map<std::string, std::vector<ir::ParameterOp>> reads;
};

/// Returns the settings that the attributes of an operator give a kernel.
std::vector<runtime::Setting> settingsOf(mlir::Operation *op);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_STAGE_WRITER_H
