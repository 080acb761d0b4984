//===- routing_margin.h - How close experts come to a tie -------*- C++ -*-===//

#ifndef MTPLAN_TESTS_EXECUTABLE_PARITY_ROUTING_MARGIN_H
#define MTPLAN_TESTS_EXECUTABLE_PARITY_ROUTING_MARGIN_H

#include <memory>

#include "runtime/backend/kernel.h"

namespace mtplan {

/// Makes a reference backend that lowers `margin` to the smallest difference
/// between two router logits of one token whose order decides which experts the
/// token goes to. A difference below the rounding error of a precision is a tie
/// there: rounding picks the expert, and the runs of two precisions diverge.
/// The backend must run on one thread.
std::unique_ptr<runtime::Backend> makeRoutingObserver(double &margin);

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_PARITY_ROUTING_MARGIN_H
