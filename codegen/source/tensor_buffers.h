//===- tensor_buffers.h - A buffer for each tensor --------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_TENSOR_BUFFERS_H
#define MTPLAN_CODEGEN_SOURCE_TENSOR_BUFFERS_H

#include <string_view>

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Returns the plan with one buffer per tensor in the arenas of activations and
/// workspace, so that each such tensor has its own name. In `plan`, several
/// tensors use one buffer at different times, and the buffer is named after the
/// first of these tensors. In the result, buffers that occupy the same bytes
/// are adjacent.
runtime::Plan withTensorBuffers(runtime::Plan plan);

/// Returns whether the label names an operator or parameter of a repeated
/// layer.
bool isInLayer(std::string_view label);
/// Returns whether an instruction of a program, other than an all-gather, is in
/// a repeated layer.
bool isOfLayer(const runtime::Program &program);

bool areSameBytes(const runtime::Buffer &one, const runtime::Buffer &other);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_TENSOR_BUFFERS_H
