//===- half.h - Many halves at a time ---------------------------*- C++ -*-===//
//
// What toFloat and toF16 do to one element, with the processor's instructions
// where it has them: compilers make no vectors of the loops.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_HALF_H
#define MTPLAN_RUNTIME_COMMUNICATOR_HALF_H

#include <cstdint>

#include "runtime/backend/element.h"

namespace mtplan::runtime {

void widen(const F16 *from, float *to, std::int64_t count);
void narrow(const float *from, F16 *to, std::int64_t count);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_HALF_H
