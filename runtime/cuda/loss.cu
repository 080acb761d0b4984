//===- loss.cu - Cross entropy over rows of logits ------------------------===//

#include <algorithm>
#include <limits>

#include "runtime/cuda/device/loss.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

Classes classesOf(const KernelSpec &spec) {
  const TensorView &logits = spec.inputs[0];
  const std::int64_t offset = pieceOf(logits, logits.shape.size() - 1).offset;
  const std::int64_t width = logits.shape.back();
  const std::int64_t all =
      spec.integer("classes", std::numeric_limits<std::int64_t>::max());
  return {offset, width, std::clamp<std::int64_t>(all - offset, 0, width)};
}

/// All that go over the rows of the logits.
template <typename R> class Vocab final : public Kernel {
public:
  Vocab(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec), classes(classesOf(spec)),
        tokens(spec.inputs[0].elements() / classes.width) {}

  void run(const Invocation &call) override {
    const cudaStream_t stream = streamOf(context);
    const Result to = resultOf(spec, call, 0);
    auto in = [&](std::size_t i) { return operandOf(spec, call, i); };
    auto targets = [&](std::size_t i) {
      return static_cast<const std::int32_t *>(call.inputs[i]);
    };
    if (spec.kernel == "vocab_max")
      vocabMax<R>(stream, in(0), to, tokens, classes);
    else if (spec.kernel == "vocab_sum_exp")
      vocabSumExp<R>(stream, in(0), in(1), to, tokens, classes);
    else if (spec.kernel == "vocab_pick")
      vocabPick<R>(stream, in(0), targets(1), to, tokens, classes);
    else
      crossEntropyGrad<R>(stream, in(0), in(1), in(2), targets(3), in(4), to,
                          tokens, classes);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const Classes classes;
  const std::int64_t tokens;
};

class TokenLoss final : public Kernel {
public:
  TokenLoss(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec) {}

  void run(const Invocation &call) override {
    const TensorView &view = spec.inputs[3];
    const std::int64_t samples = view.shape.empty() ? 1 : view.shape[0];
    tokenLoss(streamOf(context), operandOf(spec, call, 0),
              operandOf(spec, call, 1), operandOf(spec, call, 2),
              static_cast<const std::int32_t *>(call.inputs[3]),
              operandOf(spec, call, 4), resultOf(spec, call, 0), samples,
              view.elements() / samples);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
};

} // namespace

MadeKernel makeLoss(const KernelSpec &spec, const SharedContext &context) {
  if (spec.kernel == "token_loss")
    return std::make_unique<TokenLoss>(spec, context);
  return makeOf<Vocab>(spec, context);
}

} // namespace mtplan::runtime::cuda
