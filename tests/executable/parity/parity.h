//===- parity.h - Compares a plan with the model on one rank ----*- C++ -*-===//

#ifndef MTPLAN_TESTS_EXECUTABLE_PARITY_PARITY_H
#define MTPLAN_TESTS_EXECUTABLE_PARITY_PARITY_H

#include "tests/passes/verify/drawn_plan.h"

namespace mtplan {

/// Compiles a random plan, writes it to text, reads it back, checks it and runs
/// it with one thread per rank and with dropout. Expects, with differences
/// relative to the largest element of a tensor:
///
///   fp64, reference kernels   After one step, loss, gradients, gradient norm
///                             and updated parameters are within 1e-10 of the
///                             interpreted model, and every collective is
///                             called as often as in the interpreted plan.
///                             After five steps, the state with its moments is
///                             within 1e-10 of the model's plan for one rank.
///   fp32, CPU kernels         After one step, the differences are within 1e-5,
///                             and after five within 1e-4. If the fp32 plan for
///                             one rank differs by more than a quarter of that,
///                             the bound is four times its difference.
///
/// The plan for one rank must itself stay within 20 times the fp32 bounds. If
/// two experts tie (RoutingObserver), the next of up to four seeds is tried.
void expectParity(const passes::Family &family, const passes::Drawn &drawn);

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_PARITY_PARITY_H
