//===- attention.cu - Attention with an online softmax --------------------===//

#include "runtime/cuda/cudnn/fused_attention.h"
#include "runtime/cuda/device/attention.cuh"
#include "runtime/cuda/device/attention_grad.cuh"
#include "runtime/cuda/device/attention_tiles.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

/// Is the base class of the kernels of attention and its gradient. Holds their
/// shapes, dropout and bias table.
class AttentionKernel : public DeviceKernel {
public:
  /// \param tableAt  the operand index of the bias table; without a bias table,
  /// the kernel has no operand of this index
  AttentionKernel(const KernelSpec &theSpec, SharedContext theContext,
                  std::size_t tableAt);

protected:
  Heads headsOf(const Invocation &call) const;
  Masks masksOf(const Invocation &call) const;

  const Heads all;

private:
  const std::size_t table;
  DeviceMemory buckets;
};

/// Calls `use` with the smallest supported accumulator width, in units of 32
/// features, for heads of `width` features.
template <typename Use> void withWidths(std::int64_t width, Use use) {
  if (width <= 2 * kTile)
    use(std::integral_constant<int, 2>());
  else if (width <= 3 * kTile)
    use(std::integral_constant<int, 3>());
  else if (width <= 4 * kTile)
    use(std::integral_constant<int, 4>());
  else
    use(std::integral_constant<int, 8>());
}
namespace {

Heads wholeOf(const KernelSpec &spec) {
  const TensorView &query = spec.inputs[0], &key = spec.inputs[1];
  const std::int64_t width = spec.integer("head_dim", 1);
  const Span features = pieceOf(query, 2);
  Heads heads{width,
              query.shape[0],
              query.shape[1],
              query.shape[2] / width,
              key.shape[1],
              key.shape[2] / width,
              spec.integer("causal", 0) != 0,
              spec.number("scale", 1.0),
              pieceOf(query, 0),
              pieceOf(query, 1),
              features.offset / width,
              features.global / width};
  heads.softcap = spec.number("softcap", 0.0);
  return heads;
}

} // namespace

AttentionKernel::AttentionKernel(const KernelSpec &theSpec,
                                 SharedContext theContext, std::size_t tableAt)
    : DeviceKernel(theSpec, std::move(theContext)), all(wholeOf(spec)),
      table(tableAt) {
  if (all.width > kMostWidth)
    refuse(spec, "has head_dim " + std::to_string(all.width) +
                     "; GPU kernels support at most " +
                     std::to_string(kMostWidth));
  if (spec.inputs.size() <= table)
    return;
  buckets = uploaded(*context,
                     biasRows(all.queries, all.keys, all.positions.offset,
                              spec.inputs[table].shape[0],
                              spec.integer("max_distance", 0), !all.causal));
}

Heads AttentionKernel::headsOf(const Invocation &call) const {
  Heads heads = all;
  heads.microBatch = call.microBatch;
  if (spec.inputs.size() > table) {
    heads.table = in(call, table);
    heads.buckets = reinterpret_cast<const std::int32_t *>(buckets.get());
  }
  return heads;
}

Masks AttentionKernel::masksOf(const Invocation &call) const {
  return {call.step, spec.text("mask", ""), call.copy,
          spec.number("rate", 0.0)};
}

namespace {

template <typename R> class Attention final : public AttentionKernel {
public:
  Attention(const KernelSpec &theSpec, SharedContext theContext)
      : AttentionKernel(theSpec, std::move(theContext), 3) {}

  void run(const Invocation &call) override {
    withWidths(all.width, [&](auto widths) {
      attentionOf<R, decltype(widths)::value>(
          stream(), in(call, 0), in(call, 1), in(call, 2), out(call, 0),
          out(call, 1), headsOf(call), masksOf(call));
    });
  }
};

MadeKernel makeAttention(const KernelSpec &spec, const SharedContext &context) {
  if (MadeKernel fused = makeFusedAttention(spec, context))
    return fused;
  return makeOf<Attention>(spec, context);
}

} // namespace

void addAttentions(Makers &to) { to.single["attention"] = makeAttention; }

namespace {

template <typename R> class AttentionGrad final : public AttentionKernel {
public:
  AttentionGrad(const KernelSpec &theSpec, SharedContext theContext)
      : AttentionKernel(theSpec, std::move(theContext), 6),
        biased(spec.outputs.size() > 3) {
    context->reserve(attentionGradScratch<R>(all, biased,
                                             bytesOf(spec.inputs[0].type) == 2,
                                             spec.number("rate", 0.0) > 0.0));
  }

  void run(const Invocation &call) override {
    withWidths(all.width, [&](auto widths) {
      attentionGradOf<R, decltype(widths)::value>(
          stream(), {in(call, 0), in(call, 1), in(call, 2), in(call, 5)},
          in(call, 3), in(call, 4), out(call, 0), out(call, 1), out(call, 2),
          biased ? out(call, 3) : kNowhere,
          biased ? spec.outputs[3].elements() : 0, headsOf(call), masksOf(call),
          scratch());
    });
  }

private:
  const bool biased;
};

MadeKernel makeAttentionGrad(const KernelSpec &spec,
                             const SharedContext &context) {
  if (MadeKernel fused = makeFusedAttention(spec, context))
    return fused;
  return makeOf<AttentionGrad>(spec, context);
}

} // namespace

void addAttentionGrads(Makers &to) {
  to.single["attention_grad"] = makeAttentionGrad;
}

} // namespace mtplan::runtime::cuda
