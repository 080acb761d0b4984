//===- instruction_writer.h - Translates operations -------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_INSTRUCTION_WRITER_H
#define MTPLAN_CODEGEN_INSTRUCTION_WRITER_H

#include <map>
#include <string>
#include <vector>

#include "codegen/plan_names.h"
#include "codegen/stage_tensors.h"

namespace mtplan::codegen {

/// Holds an instruction, and the launch number of its operation (`mtp.batch`),
/// or -1 if the operation has none.
struct Written {
  runtime::Instruction instruction;
  std::int64_t batch = -1;
};

/// Translates the operations of a stage one by one. An operation becomes one
/// instruction or none, or part of the previous instruction if it is fused.
/// `mtp.adamw` may need further instructions that copy shards or host data, and
/// `mtp.accumulated` becomes one instruction per accumulator after the first.
class InstructionWriter {
public:
  /// All arguments must outlive the object.
  /// \param parameterReads  every mtp.parameter of the stage, by label
  InstructionWriter(
      PlanNames &planNames, const runtime::Stage &theStage,
      StageTensors &stageTensors,
      const std::map<std::string, std::vector<ir::ParameterOp>> &parameterReads)
      : names(planNames), stage(theStage), tensors(stageTensors),
        reads(parameterReads) {}

  /// Appends the instructions of `op` to `program`. Fails, with a diagnostic,
  /// if `op` has no stream or no PlaceAttr, or cannot be translated.
  mlir::LogicalResult write(mlir::Operation *op, std::vector<Written> &program);

  /// Returns the mtp.parameter that reads the memory updated by `op`, or null.
  ir::ParameterOp readOf(ir::AdamwOp op) const;

private:
  using Instructions = std::vector<runtime::Instruction>;

  mlir::LogicalResult writeAlone(mlir::Operation *op, Instructions &written);
  mlir::LogicalResult writeKernel(mlir::Operation *op,
                                  runtime::Instruction &instruction);
  bool writeCollective(mlir::Operation *op, runtime::Instruction &instruction);
  mlir::LogicalResult writeAccumulated(ir::AccumulatedOp op,
                                       Instructions &written);
  mlir::LogicalResult writeAccumulate(ir::AccumulateOp op,
                                      Instructions &written);
  mlir::LogicalResult writeAdamw(ir::AdamwOp op, Instructions &written);

  PlanNames &names;
  const runtime::Stage &stage;
  StageTensors &tensors;
  const std::map<std::string, std::vector<ir::ParameterOp>> &reads;
};

/// Returns a program of the instructions in `written`. Instructions with the
/// same launch number and kernel become a batch. If one launch contains all
/// instructions, and `copies` is above 1, the launch becomes a batch over all
/// layers.
/// \param copies  number of layers whose weights the program updates, or 1 for
/// a program that updates none
runtime::Program programOf(const std::string &name,
                           std::vector<Written> written, int copies = 1);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_INSTRUCTION_WRITER_H
