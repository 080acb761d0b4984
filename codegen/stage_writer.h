//===- stage_writer.h - One stage's part of an executable plan --*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_STAGE_WRITER_H
#define MTPLAN_CODEGEN_STAGE_WRITER_H

#include <map>
#include <string>
#include <vector>

#include "codegen/instruction_writer.h"

namespace mtplan::codegen {

class StageWriter {
public:
  StageWriter(PlanNames &planNames, std::int64_t stageNumber)
      : names(planNames), number(stageNumber), tensors(names.mesh, stage),
        instructions(names, stage, tensors, reads) {}
  StageWriter(const StageWriter &) = delete;
  StageWriter &operator=(const StageWriter &) = delete;

  /// Writes a stage's programs, schedule and parameters. Fails with a
  /// diagnostic if an operation cannot be translated.
  /// \param tasks     of the stage, as in kTasksAttrName
  /// \param segments  that the stage holds, in module order
  mlir::FailureOr<runtime::Stage>
  write(llvm::ArrayRef<std::int64_t> tasks,
        const std::vector<ir::SegmentOp> &segments, ir::UpdateOp update);

private:
  /// The instructions of a segment's two directions.
  struct Directions {
    std::vector<Written> forward, backward;
  };
  /// A program of the update.
  struct UpdatePart {
    std::vector<Written> instructions;
    int firstCopy = 0, copies = 1;
  };

  mlir::LogicalResult writeBlock(mlir::Block &block,
                                 std::vector<Written> &program);
  int addProgram(const std::string &name, std::vector<Written> written,
                 std::int64_t firstCopy);
  void addSchedule(llvm::ArrayRef<std::int64_t> tasks,
                   const std::vector<ir::SegmentOp> &segments);
  mlir::FailureOr<std::vector<UpdatePart>> partsOf(ir::UpdateOp update,
                                                   bool applies);
  void addUpdate(std::vector<UpdatePart> parts, bool applies);
  mlir::LogicalResult addParameter(ir::AdamwOp op);
  runtime::Tensor fromCopy(runtime::Tensor tensor, std::int64_t first) const;

  PlanNames &names;
  std::int64_t number;
  runtime::Stage stage;
  /// Reads of parameters, by label.
  std::map<std::string, std::vector<ir::ParameterOp>> reads;
  StageTensors tensors;
  InstructionWriter instructions;
  /// By the name of the segment.
  std::map<std::string, Directions> directions;
  /// The forward and the backward program by segment, or -1.
  std::map<std::string, std::pair<int, int>> programs;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_STAGE_WRITER_H
