//===- parity.h - Compares a plan with the model on one rank ----*- C++ -*-===//

#ifndef MTPLAN_TESTS_EXECUTABLE_PARITY_PARITY_H
#define MTPLAN_TESTS_EXECUTABLE_PARITY_PARITY_H

#include "tests/passes/verify/drawn_plan.h"

namespace mtplan {

/// PARITY and CENSUS of one plan, compiled, written, read back, checked and run
/// on a thread a rank, dropout on:
///
///   fp64, reference kernels   loss, every gradient, their norm, every updated
///                             parameter against the interpreted model, 1e-10;
///                             each collective as often as the program says;
///                             after five steps also the moments, against the
///                             model as a plan of one rank, 1e-10
///   fp32, the CPU's kernels   the same after one step, 1e-5, and after five,
///                             1e-4; where sums cancel (the gradient of a bias
///                             of keys is nothing but rounding) so does a plan
///                             of one rank, and four times its difference is
///                             the bound
///
/// A plan of one rank must itself stay within twenty times the fp32 bound. If
/// two experts tie (RoutingObserver), the next seed is used, for which they do
/// not.
void expectParity(const passes::Family &family, const passes::Drawn &drawn);

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_PARITY_PARITY_H
