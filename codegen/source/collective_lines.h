//===- collective_lines.h - Collectives as lines of a program ---*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_COLLECTIVE_LINES_H
#define MTPLAN_CODEGEN_SOURCE_COLLECTIVE_LINES_H

#include <string>

#include "codegen/source/stage_names.h"
#include "codegen/source/stage_source.h"
#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

class CollectiveLines {
public:
  CollectiveLines(const runtime::Plan &thePlan,
                  const runtime::Program &theProgram,
                  const StageNames &theNames, const SharedNames &theShared,
                  Text &theText);

  void write(std::size_t i) const;

  /// Returns the reason why collective i is needed, for a comment: "each rank
  /// has a term of the sum in h.*.attn.proj (einsum)".
  std::string causeOf(std::size_t i) const;

private:
  std::string ranksText(const runtime::Group &group) const;
  std::string originOf(const runtime::Instruction &instruction) const;

  const runtime::Plan &plan;
  const runtime::Program &program;
  const StageNames &names;
  const SharedNames &shared;
  Text &text;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_COLLECTIVE_LINES_H
