//===- tensor_buffers.h - A buffer for each tensor --------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_TENSOR_BUFFERS_H
#define MTPLAN_CODEGEN_SOURCE_TENSOR_BUFFERS_H

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Returns the plan with a buffer of its own for each activation, so that each
/// has its own name. The plan names a buffer by its first tensor, but tensors
/// use a buffer by turns. Buffers of the same bytes follow each other, the
/// plan's own first.
runtime::Plan withTensorBuffers(runtime::Plan plan);

/// Whether two buffers are the same bytes.
bool areSameBytes(const runtime::Buffer &one, const runtime::Buffer &other);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_TENSOR_BUFFERS_H
