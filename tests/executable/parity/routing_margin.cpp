//===- routing_margin.cpp - How close experts come to a tie ---------------===//

#include "tests/executable/parity/routing_margin.h"

#include <algorithm>
#include <functional>

#include "runtime/backend/element.h"
#include "runtime/backend/followed.h"

namespace mtplan {

namespace {

using namespace runtime;

class ObservedGate : public Kernel {
public:
  ObservedGate(const KernelSpec &spec, MadeKernel theKernel, double &theMargin)
      : logits(spec.inputs.front()), topK(spec.integer("top_k", 1)),
        kernel(std::move(theKernel)), margin(theMargin) {}

  void run(const Invocation &call) override {
    const std::int64_t experts = logits.shape.back();
    std::vector<double> token(static_cast<std::size_t>(experts));
    for (std::int64_t first = 0; first < logits.elements(); first += experts) {
      for (std::int64_t e = 0; e < experts; ++e)
        token[static_cast<std::size_t>(e)] =
            readElement(logits.type, call.inputs[0], first + e);
      std::ranges::sort(token, std::greater());
      for (std::int64_t k = 1; k <= std::min(topK, experts - 1); ++k)
        margin = std::min(margin, token[static_cast<std::size_t>(k - 1)] -
                                      token[static_cast<std::size_t>(k)]);
    }
    kernel->run(call);
  }

private:
  const TensorView logits; ///< [batch, sequence, experts]
  const std::int64_t topK;
  MadeKernel kernel;
  double &margin;
};

class RoutingObserver : public Backend {
public:
  explicit RoutingObserver(double &theMargin) : margin(theMargin) {}

  std::unique_ptr<Kernel> prepare(const KernelSpec &spec) override {
    if (isOfTwo(spec))
      return inTurn(*this, spec);
    MadeKernel kernel = reference->prepare(spec);
    if (spec.kernel != "moe_gate")
      return kernel;
    return std::make_unique<ObservedGate>(spec, std::move(kernel), margin);
  }

private:
  std::unique_ptr<Backend> reference = makeReferenceBackend();
  double &margin;
};

} // namespace

std::unique_ptr<Backend> makeRoutingObserver(double &margin) {
  return std::make_unique<RoutingObserver>(margin);
}

} // namespace mtplan
