//===- families.h - Kernel factories by family ------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_FAMILIES_H
#define MTPLAN_RUNTIME_CUDA_FAMILIES_H

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backend/followed.h"
#include "runtime/backend/kernel.h"
#include "runtime/backend/signature.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/device/tensor.h"

namespace mtplan::runtime::cuda {

/// Makes a kernel for a spec that has passed checkSpec.
using Maker = MadeKernel (*)(const KernelSpec &spec,
                             const SharedContext &context);
/// Makes one kernel that does all runs, like Backend::prepareTogether. There is
/// at least one run.
using ManyMaker = MadeKernel (*)(const std::vector<FixedRun> &runs,
                                 const SharedContext &context);

/// Holds the factories by kernel name.
struct Makers {
  std::map<std::string, Maker> single;
  /// Each factory makes one kernel of a fused pair (followed.h), or returns
  /// null.
  std::map<std::string, Maker> fused;
  std::map<std::string, ManyMaker> many;
};

/// Each of these functions adds the factories of a family to `to`.
void addAttentions(Makers &to);
void addAttentionGrads(Makers &to);
void addEmbeddings(Makers &to);
void addExperts(Makers &to);
void addLosses(Makers &to);
void addMoves(Makers &to);
void addNorms(Makers &to);
void addPointwise(Makers &to);
void addProducts(Makers &to);
void addSums(Makers &to);
void addUpdates(Makers &to);

MadeKernel makePointwise(const KernelSpec &spec, const SharedContext &context);
/// Makes the kernel of an einsum that is no matrix product (letters.cuh).
MadeKernel makeLetterSum(const KernelSpec &spec, const SharedContext &context);
/// Makes the batched product of Backend::prepareEven, or returns null.
MadeKernel makeEvenProducts(const KernelSpec &spec, const EvenRuns &runs,
                            const SharedContext &context);

/// Makes a kernel whose class is the same for all element types.
template <typename Class>
MadeKernel makeAny(const KernelSpec &spec, const SharedContext &context) {
  return std::make_unique<Class>(spec, context);
}

template <template <typename> class Class>
MadeKernel makeTyped(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Class>(spec, context);
}

/// Makes a kernel fused with its consumer, or returns null if their precisions
/// differ.
template <template <typename> class Class>
MadeKernel makeFused(const KernelSpec &spec, const SharedContext &context) {
  return isOfOnePrecision(spec) ? makeOf<Class>(spec, context) : nullptr;
}

/// Queues to[rows, width] = from[rows, width] + row[width]. `to` and `from` may
/// be equal.
/// \param elements  rows * width
/// \param doubly    whether to add in double precision
void addRow(cudaStream_t stream, Operand from, Operand row, std::int64_t width,
            Result to, std::int64_t elements, bool doubly);

/// Queues the transposition [batch, rows, columns] -> [batch, columns, rows].
void transposeRows(cudaStream_t stream, const float *from, float *to,
                   std::int64_t batch, std::int64_t rows, std::int64_t columns);

/// Returns operand (operandOf) or result (resultOf) number `i` of a call.
inline Operand operandOf(const KernelSpec &spec, const Invocation &call,
                         std::size_t i) {
  return {call.inputs[i], spec.inputs[i].type};
}
inline Result resultOf(const KernelSpec &spec, const Invocation &call,
                       std::size_t i) {
  return {call.outputs[i], spec.outputs[i].type};
}

class DeviceKernel : public Kernel {
public:
  DeviceKernel(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec) {}

protected:
  cudaStream_t stream() const { return context->stream().get(); }
  void *scratch() const { return context->shared<void>(); }
  Operand in(const Invocation &call, std::size_t i) const {
    return operandOf(spec, call, i);
  }
  const std::int32_t *integers(const Invocation &call, std::size_t i) const {
    return static_cast<const std::int32_t *>(call.inputs[i]);
  }
  Result out(const Invocation &call, std::size_t i) const {
    return resultOf(spec, call, i);
  }

  const SharedContext context;
  const KernelSpec spec;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_FAMILIES_H
