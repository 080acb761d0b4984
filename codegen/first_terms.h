//===- first_terms.h - What gradients' sums begin with ----------*- C++ -*-===//
//
// A sum over micro-batches begins with its first term, which is stored whatever
// was there: nothing is cleared before it, nor read, which on a device saves a
// write and a read of all gradients a step.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_FIRST_TERMS_H
#define MTPLAN_CODEGEN_FIRST_TERMS_H

#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Gives `first_term` to what adds first to each sum of the stage, by its
/// schedule. O(runs of instructions in a step).
/// \return the buffers of sums, by name, that have none: a piece is read before
/// it, or who comes first, or in which micro-batch, is not the same in all
std::vector<std::string> storeFirstTerms(runtime::Stage &stage);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_FIRST_TERMS_H
