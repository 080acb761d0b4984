//===- loss.cu - Softmax and cross entropy --------------------------------===//

#include <algorithm>
#include <limits>

#include "runtime/cuda/device/loss.cuh"
#include "runtime/cuda/device/softmax.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {
namespace {

template <typename R> class Softmax final : public DeviceKernel {
public:
  Softmax(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)),
        // A scalar is one row of one element.
        width(spec.outputs[0].shape.empty() ? 1 : spec.outputs[0].shape.back()),
        rows(spec.outputs[0].elements() / width) {}

  void run(const Invocation &call) override {
    if (spec.kernel == "softmax")
      softmax<R>(stream(), in(call, 0), out(call, 0), rows, width);
    else
      softmaxGrad<R>(stream(), in(call, 0), in(call, 1), out(call, 0), rows,
                     width);
  }

private:
  const std::int64_t width, rows;
};

Classes classesOf(const KernelSpec &spec) {
  const TensorView &logits = spec.inputs[0];
  const std::int64_t offset = pieceOf(logits, logits.shape.size() - 1).offset;
  const std::int64_t width = logits.shape.back();
  const std::int64_t all =
      spec.integer("classes", std::numeric_limits<std::int64_t>::max());
  return {offset, width, std::clamp<std::int64_t>(all - offset, 0, width)};
}

template <typename R> class Vocab final : public DeviceKernel {
public:
  Vocab(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)), classes(classesOf(spec)),
        tokens(spec.inputs[0].elements() / classes.width) {}

  void run(const Invocation &call) override {
    const Operand logits = in(call, 0);
    const Result to = out(call, 0);
    if (spec.kernel == "vocab_max")
      vocabMax<R>(stream(), logits, to, tokens, classes);
    else if (spec.kernel == "vocab_sum_exp")
      vocabSumExp<R>(stream(), logits, in(call, 1), to, tokens, classes);
    else if (spec.kernel == "vocab_pick")
      vocabPick<R>(stream(), logits, integers(call, 1), to, tokens, classes);
    else
      crossEntropyGrad<R>(stream(), logits, in(call, 1), in(call, 2),
                          integers(call, 3), in(call, 4), to, tokens, classes);
  }

private:
  const Classes classes;
  const std::int64_t tokens;
};

class TokenLoss final : public DeviceKernel {
public:
  using DeviceKernel::DeviceKernel;

  void run(const Invocation &call) override {
    const TensorView &view = spec.inputs[3];
    const std::int64_t samples = view.shape.empty() ? 1 : view.shape[0];
    tokenLoss(stream(), in(call, 0), in(call, 1), in(call, 2),
              integers(call, 3), in(call, 4), out(call, 0), samples,
              view.elements() / samples);
  }
};

} // namespace

void addLosses(Makers &to) {
  to.single["softmax"] = to.single["softmax_grad"] = makeTyped<Softmax>;
  for (const char *name :
       {"cross_entropy_grad", "vocab_max", "vocab_pick", "vocab_sum_exp"})
    to.single[name] = makeTyped<Vocab>;
  to.single["token_loss"] = makeAny<TokenLoss>;
}

} // namespace mtplan::runtime::cuda
