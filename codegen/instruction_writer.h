//===- instruction_writer.h - What an operation becomes ---------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_INSTRUCTION_WRITER_H
#define MTPLAN_CODEGEN_INSTRUCTION_WRITER_H

#include <map>
#include <string>
#include <vector>

#include "codegen/plan_names.h"
#include "codegen/stage_tensors.h"

namespace mtplan::codegen {

/// An instruction and the launch that `mtp.batch` puts it in, or -1.
struct Written {
  runtime::Instruction instruction;
  std::int64_t batch = -1;
};

/// Translates the operations of a stage one by one. An operation becomes one
/// instruction, or none, or part of the instruction before it if it is fused;
/// `mtp.adamw` becomes as many as the place of its state asks for.
class InstructionWriter {
public:
  /// All arguments must outlive the object.
  /// \param parameterReads  the reads of parameters by the stage, by label
  InstructionWriter(
      PlanNames &planNames, const runtime::Stage &theStage,
      StageTensors &stageTensors,
      const std::map<std::string, std::vector<ir::ParameterOp>> &parameterReads)
      : names(planNames), stage(theStage), tensors(stageTensors),
        reads(parameterReads) {}

  /// Appends to `program` what an operation becomes. Fails with a diagnostic if
  /// it has no stream or no place, or if no instruction can stand for it.
  mlir::LogicalResult write(mlir::Operation *op, std::vector<Written> &program);

  /// Returns a read of the parameter that `op` updates, which has the place
  /// that the state names, or null.
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

/// Returns a program of these instructions. Those of one launch and kernel
/// become a batch if there are several.
/// \param copies  how many copies of its layer a program of the update updates
/// in a row; 1: it is another program
runtime::Program programOf(const std::string &name,
                           std::vector<Written> written, int copies = 1);

/// Returns the settings that the attributes of an operator give a kernel.
std::vector<runtime::Setting> settingsOf(mlir::Operation *op);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_INSTRUCTION_WRITER_H
