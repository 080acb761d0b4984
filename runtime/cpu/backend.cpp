//===- backend.cpp - The CPU's kernels ------------------------------------===//

#include <map>
#include <string>

#include "runtime/cpu/families.h"

namespace mtplan::runtime {
namespace cpu {
namespace {

/// What is not here is rare, and the reference does it.
const std::map<std::string, Maker> &makers() {
  static const std::map<std::string, Maker> kTable = {
      {"accumulate", makePointwise},
      {"activation", makePointwise},
      {"activation_grad", makePointwise},
      {"adamw", makeAdamw},
      {"add", makePointwise},
      {"attention", makeAttention},
      {"attention_grad", makeAttentionGrad},
      {"cast", makePointwise},
      {"copy", makePointwise},
      {"cross_entropy_grad", makeVocab},
      {"dropout", makeDropout},
      {"einsum", makeProduct},
      {"embedding", makeEmbedding},
      {"embedding_grad", makeEmbedding},
      {"layer_norm", makeNorm},
      {"layer_norm_grad", makeNorm},
      {"mask", makeMove},
      {"mul", makePointwise},
      {"piece", makeMove},
      {"position_embedding", makePosition},
      {"position_embedding_grad", makePosition},
      {"rms_norm", makeNorm},
      {"rms_norm_grad", makeNorm},
      {"rope", makeRope},
      {"scale", makePointwise},
      {"slice", makeMove},
      {"square_sum", makeSquareSum},
      {"sum", makeSum},
      {"swiglu", makePointwise},
      {"swiglu_grad", makePointwise},
      {"token_loss", makeTokenLoss},
      {"transpose", makeMove},
      {"vocab_max", makeVocab},
      {"vocab_pick", makeVocab},
      {"vocab_sum_exp", makeVocab},
      {"zeros", makeMove},
  };
  return kTable;
}

class CpuBackend : public Backend {
public:
  explicit CpuBackend(int threads)
      : context(std::make_shared<Context>(threads)),
        reference(makeReferenceBackend()) {}

  std::unique_ptr<Kernel> prepare(const KernelSpec &spec) override {
    checkSpec(spec);
    if (auto found = makers().find(spec.kernel); found != makers().end())
      if (MadeKernel kernel = found->second(spec, context))
        return kernel;
    return reference->prepare(spec);
  }

private:
  const SharedContext context;
  const std::unique_ptr<Backend> reference;
};

} // namespace
} // namespace cpu

std::unique_ptr<Backend> makeCpuBackend(int threads) {
  return std::make_unique<cpu::CpuBackend>(threads);
}

} // namespace mtplan::runtime
