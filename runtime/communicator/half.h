//===- half.h - Vectorized conversion of half precision ---------*- C++ -*-===//
//
// Converts like toFloat and toF16, with the F16C instructions if the processor
// has them, because compilers do not vectorize loops over those functions.
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
