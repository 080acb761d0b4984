//===- backend.cpp - The CPU backend --------------------------------------===//

#include <cstdlib>
#include <fstream>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "runtime/backend/followed.h"
#include "runtime/cpu/families.h"

namespace mtplan::runtime {
namespace cpu {
namespace {

/// Returns the factories by kernel. The reference backend runs all other
/// kernels.
const std::map<std::string, Maker> &makers() {
  static const std::map<std::string, Maker> kTable = [] {
    std::map<std::string, Maker> table = {
        {"adamw", makeAdamw},
        {"attention", makeAttention},
        {"attention_grad", makeAttentionGrad},
        {"cross_entropy_grad", makeVocab},
        {"dropout", makeDropout},
        {"einsum", makeProduct},
        {"embedding", makeEmbedding},
        {"embedding_grad", makeEmbedding},
        {"layer_norm", makeNorm},
        {"layer_norm_grad", makeNorm},
        {"mask", makeMove},
        {"piece", makeMove},
        {"position_embedding", makePosition},
        {"position_embedding_grad", makePosition},
        {"rms_norm", makeNorm},
        {"rms_norm_grad", makeNorm},
        {"rope", makeRope},
        {"slice", makeMove},
        {"square_sum", makeSquareSum},
        {"sum", makeSum},
        {"token_loss", makeTokenLoss},
        {"transpose", makeMove},
        {"vocab_max", makeVocab},
        {"vocab_pick", makeVocab},
        {"vocab_sum_exp", makeVocab},
        {"zeros", makeMove},
    };
    addPointwise(table);
    return table;
  }();
  return kTable;
}

// Returns the text after the colon in a file's first line that starts with
// `key`, or "".
std::string entryOf(const char *file, const std::string &key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key))
      if (const std::size_t colon = line.find(':'); colon != std::string::npos)
        if (const std::size_t from = line.find_first_not_of(" \t", colon + 1);
            from != std::string::npos)
          return line.substr(from);
  return {};
}

DeviceFacts factsOfHost() {
  DeviceFacts facts;
  facts.name = entryOf("/proc/cpuinfo", "model name");
  const dnnl::version_t &version = *dnnl::version();
  facts.libraries = "oneDNN " + std::to_string(version.major) + '.' +
                    std::to_string(version.minor) + '.' +
                    std::to_string(version.patch);
  // The text has the form "24576000 kB".
  facts.memory =
      std::strtoll(entryOf("/proc/meminfo", "MemTotal").c_str(), nullptr, 10) *
      1024;
  return facts;
}

class CpuBackend : public Backend {
public:
  explicit CpuBackend(int threads)
      : context(std::make_shared<Context>(threads)),
        reference(makeReferenceBackend()) {}

  std::unique_ptr<Kernel> prepare(const KernelSpec &spec) override {
    checkSpec(spec);
    if (isOfTwo(spec)) {
      MadeKernel both;
      if (spec.kernel == "sum")
        both = makeFollowedSum(spec, context);
      else if (spec.kernel == "einsum" && !spec.find(kBiasGradient))
        both = makeFollowedProduct(spec, context);
      return both ? std::move(both) : makeSequential(*this, spec);
    }
    if (auto found = makers().find(spec.kernel); found != makers().end())
      if (MadeKernel kernel = found->second(spec, context))
        return kernel;
    return reference->prepare(spec);
  }

  DeviceFacts facts() const override { return factsOfHost(); }

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
