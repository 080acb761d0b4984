//===- stage_writer.h - One stage's part of an executable plan --*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_STAGE_WRITER_H
#define MTPLAN_CODEGEN_STAGE_WRITER_H

#include <map>
#include <string>
#include <vector>

#include "codegen/segment_runs.h"

namespace mtplan::codegen {

class StageWriter {
public:
  StageWriter(PlanNames &planNames, std::int64_t stageNumber)
      : names(planNames), number(stageNumber), tensors(names.mesh, stage),
        instructions(names, stage, tensors, reads) {}
  StageWriter(const StageWriter &) = delete;
  StageWriter &operator=(const StageWriter &) = delete;

  /// Returns the stage with its programs, schedule and parameters. Fails, with
  /// a diagnostic, if an operation cannot be translated.
  /// \param tasks     tasks of the stage, encoded as in kTasksAttrName
  /// \param segments  segments of the stage, in module order
  mlir::FailureOr<runtime::Stage>
  write(llvm::ArrayRef<std::int64_t> tasks,
        const std::vector<ir::SegmentOp> &segments, ir::UpdateOp update);

private:
  struct Directions {
    Direction forward, backward;
  };
  struct UpdatePart {
    std::vector<Written> instructions;
    int firstCopy = 0, copies = 1;
  };

  mlir::LogicalResult writeBlock(mlir::Block &block, Direction &program);
  void addPrograms(const std::vector<ir::SegmentOp> &segments);
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
  std::map<std::string, std::vector<ir::ParameterOp>> reads;
  StageTensors tensors;
  InstructionWriter instructions;
  std::map<std::string, Directions> directions;
  /// Maps a segment's name to the entries that run its programs forward and
  /// backward. The entries have no micro-batch yet.
  using Entries = std::vector<runtime::ScheduleEntry>;
  std::map<std::string, std::pair<Entries, Entries>> scheduled;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_STAGE_WRITER_H
