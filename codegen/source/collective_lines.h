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

/// The collectives of one program of a stage. Collectives that differ only in
/// their tensors become a table of these tensors and a loop over it.
class CollectiveLines {
public:
  CollectiveLines(const runtime::Plan &thePlan,
                  const runtime::Program &theProgram,
                  const StageNames &theNames, const SharedNames &theShared,
                  Text &theText);

  /// Writes the call of the collective that is instruction i.
  void write(std::size_t i) const;

  /// Returns one past the instructions of the table that begins with
  /// instruction i; i if there is none.
  /// \param end      one past the last instruction that it may have
  /// \param isGroup  whether all of them are one launch of NCCL, around which
  ///                 the caller writes waits and events
  std::size_t endOfTable(std::size_t i, std::size_t end, bool isGroup) const;
  /// Writes the table of instructions [i, end) and its loop.
  void writeTable(std::size_t i, std::size_t end, bool isGroup);

  /// Returns why a collective is there, for a comment: "each rank has a term of
  /// the sum in h.*.attn.proj (einsum)".
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
  /// Whether instruction i is a collective whose waits and awaited event are
  /// all within the `length` instructions from `row` on.
  bool isWithin(std::size_t i, std::size_t row, std::size_t length) const;
  bool areAlike(std::size_t i, std::size_t other, std::size_t length) const;
  std::size_t rowsFrom(std::size_t i, std::size_t end, std::size_t length,
                       bool isGroup) const;
  /// Returns how many instructions a row of the table has.
  std::size_t lengthOfRow(std::size_t i, std::size_t end, bool isGroup) const;

  const runtime::Plan &plan;
  const runtime::Program &program;
  const StageNames &names;
  const SharedNames &shared;
  Text &text;
  /// By instruction: the last one that waits for it, or -1.
  std::vector<int> lastWaiters;
  std::set<std::string> namesTaken; ///< by tables
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_COLLECTIVE_LINES_H
