//===- reference.cpp - The backend of plain loops -------------------------===//

#include "runtime/reference/reference.h"

#include <algorithm>

#include "runtime/backend/element.h"
#include "runtime/backend/followed.h"

namespace mtplan::runtime {
namespace reference {

void Call::addSample(std::size_t output, Doubles &term) {
  const auto isWide = [](const TensorView &view) {
    return view.type == ElementType::f64;
  };
  const auto rounded = [](bool wide, double value) {
    return wide ? value : static_cast<double>(static_cast<float>(value));
  };
  const bool wide = std::ranges::any_of(spec.inputs, isWide);
  for (std::size_t i = 0; i < term.size(); ++i) {
    const double own = rounded(wide, term[i]);
    out[output][i] =
        rounded(isWide(spec.outputs[output]), out[output][i] + own);
    term[i] = 0.0;
  }
}

namespace {

const Table &table() {
  static const Table kTable = [] {
    Table all;
    addLinear(all);
    addEmbedding(all);
    addPointwise(all);
    addNorm(all);
    addAttention(all);
    addLoss(all);
    addMoe(all);
    addPosition(all);
    addUpdate(all);
    return all;
  }();
  return kTable;
}

Doubles widened(const TensorView &view, const void *data) {
  Doubles values(static_cast<std::size_t>(view.elements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = readElement(view.type, data, static_cast<std::int64_t>(i));
  return values;
}

class PlainKernel : public Kernel {
public:
  PlainKernel(KernelSpec theSpec, Function theFunction, bool isUpdate)
      : spec(std::move(theSpec)), function(theFunction), updates(isUpdate) {}

  void run(const Invocation &invocation) override {
    Call call{spec, {}, nullptr, nullptr, {}, {}};
    if (invocation.step) {
      call.moment = invocation.moment();
      call.update = &invocation.step->update;
      call.norm = &invocation.step->norm;
    }
    for (std::size_t i = 0; i < spec.inputs.size(); ++i)
      call.in.push_back(widened(spec.inputs[i], invocation.inputs[i]));
    for (std::size_t i = 0; i < spec.outputs.size(); ++i)
      call.out.push_back(
          updates
              ? widened(spec.outputs[i], invocation.outputs[i])
              : Doubles(static_cast<std::size_t>(spec.outputs[i].elements()),
                        0.0));
    function(call);
    for (std::size_t i = 0; i < spec.outputs.size(); ++i)
      for (std::size_t e = 0; e < call.out[i].size(); ++e)
        writeElement(spec.outputs[i].type, invocation.outputs[i],
                     static_cast<std::int64_t>(e), call.out[i][e]);
  }

private:
  const KernelSpec spec;
  const Function function;
  const bool updates;
};

class ReferenceBackend : public Backend {
public:
  std::unique_ptr<Kernel> prepare(const KernelSpec &spec) override {
    checkSpec(spec);
    if (isOfTwo(spec))
      return inTurn(*this, spec);
    const Table &all = table();
    if (auto found = all.functions.find(spec.kernel);
        found != all.functions.end())
      return std::make_unique<PlainKernel>(spec, found->second, false);
    return std::make_unique<PlainKernel>(spec, all.updates.at(spec.kernel),
                                         true);
  }
};

} // namespace
} // namespace reference

std::unique_ptr<Backend> makeReferenceBackend() {
  return std::make_unique<reference::ReferenceBackend>();
}

} // namespace mtplan::runtime
