//===- collective_lines.h - Collectives as lines of a program ---*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_COLLECTIVE_LINES_H
#define MTPLAN_CODEGEN_SOURCE_COLLECTIVE_LINES_H

#include <set>
#include <string>
#include <vector>

#include "codegen/source/stage_names.h"
#include "codegen/source/stage_source.h"
#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

class Table;

/// Writes the collectives of one program of a stage. Collectives that differ
/// only in their tensors become a table of tensors and a loop over the table.
class CollectiveLines {
public:
  CollectiveLines(const runtime::Plan &thePlan,
                  const runtime::Program &theProgram,
                  const StageNames &theNames, const SharedNames &theShared,
                  Text &theText);

  /// Writes the call of the collective that is instruction i.
  void write(std::size_t i) const;

  /// Returns one past the last instruction of the table that begins with
  /// instruction i, or i if no table begins there.
  /// \param end      one past the last instruction that the table may contain
  /// \param isGroup  whether instructions [i, end) are in one launch of NCCL;
  ///                 the caller writes the waits and events of the launch
  std::size_t endOfTable(std::size_t i, std::size_t end, bool isGroup) const;
  /// Writes the table of instructions [i, end) and its loop.
  void writeTable(std::size_t i, std::size_t end, bool isGroup);

  /// Returns the reason for a collective, for a comment: "each rank has a term
  /// of the sum in h.*.attn.proj (einsum)".
  std::string causeOf(std::size_t i) const;

private:
  struct Call;
  Call callOf(std::size_t i) const;
  std::vector<std::string> argumentsOf(const std::vector<Call> &calls,
                                       const std::string &run,
                                       Table &table) const;
  std::string runOf(std::size_t i) const;
  std::string ranksText(const runtime::Group &group) const;
  std::string originOf(const runtime::Instruction &instruction) const;
  /// Returns whether instruction i can be in the row of a table that has the
  /// instructions [row, row + length). Instruction i must be a collective, wait
  /// only for instructions of the row, be awaited only by these, and have the
  /// same `overlapped` as instruction `row`.
  bool isWithin(std::size_t i, std::size_t row, std::size_t length) const;
  bool areAlike(std::size_t i, std::size_t other, std::size_t length) const;
  std::size_t rowsFrom(std::size_t i, std::size_t end, std::size_t length,
                       bool isGroup) const;
  /// Returns the number of instructions per row of the table that begins with
  /// instruction i, or 0 if no table begins there.
  std::size_t lengthOfRow(std::size_t i, std::size_t end, bool isGroup) const;

  const runtime::Plan &plan;
  const runtime::Program &program;
  const StageNames &names;
  const SharedNames &shared;
  Text &text;
  /// Holds, for each instruction, the last instruction that waits for it, or
  /// -1.
  std::vector<int> lastWaiters;
  std::set<std::string> namesTaken; ///< names of tables
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_COLLECTIVE_LINES_H
