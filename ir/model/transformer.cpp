//===- transformer.cpp - Builds a transformer from its description --------===//
//
// The output of each branch is added to the residual stream. The last matrix of
// a branch therefore has the initialisation `residual`: its standard deviation
// is divided by the square root of twice the number of layers.
//
//===----------------------------------------------------------------------===//

#include "ir/model/transformer.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace mtplan::ir {

namespace {

Value norm(ModelBuilder &builder, const Transformer &model, StringRef label,
           Value x) {
  return model.rms ? builder.rmsNorm(label, x, model.epsilon)
                   : builder.layerNorm(label, x, model.epsilon);
}

Value attentionBranch(ModelBuilder &builder, const Transformer &model,
                      Value x) {
  std::int64_t width = model.heads * model.headDim;
  std::int64_t kvWidth = model.kvHeads * model.headDim;
  Value query = builder.linear("h.*.attn.q", x, width, model.queryBias);
  Value key = builder.linear("h.*.attn.k", x, kvWidth, model.queryBias);
  Value value = builder.linear("h.*.attn.v", x, kvWidth, model.queryBias);
  if (model.rotaryDim > 0) {
    query = builder.rope("h.*.attn.q_rope", query, model.headDim,
                         model.rotaryDim, model.theta, model.interleaved);
    key = builder.rope("h.*.attn.k_rope", key, model.headDim, model.rotaryDim,
                       model.theta, model.interleaved);
  }
  Value mixed = builder.attention("h.*.attn.core", query, key, value,
                                  model.headDim, model.causal,
                                  model.attentionScale, model.attentionDropout,
                                  Value(), 0, model.attentionSoftcap);
  Value y = builder.linear("h.*.attn.proj", mixed, model.hidden, model.projBias,
                           "residual");
  return builder.dropout("h.*.attn.drop", y, model.residualDropout);
}

Value expertBranch(ModelBuilder &builder, const Transformer &model, Value x) {
  const Experts &experts = model.experts;
  Value logits = builder.router("h.*.moe.router", x, experts.count);
  Value gates = builder.moeGate("h.*.moe.gates", logits, experts.chosen,
                                experts.normalise);
  Value slots = builder.moeSlots("h.*.moe.slots", logits, experts.chosen);
  if (experts.balance > 0.0)
    builder.balanceLoss("h.*.moe.balance", logits, experts.chosen,
                        experts.balance);
  Value sent = builder.moeDispatch("h.*.moe.dispatch", x, slots,
                                   experts.places(model.sequence));
  Value gate = builder.expertLinear("h.*.moe.gate", sent, experts.inner);
  Value up = builder.expertLinear("h.*.moe.up", sent, experts.inner);
  Value down = builder.expertLinear("h.*.moe.down",
                                    builder.swiglu("h.*.moe.act", gate, up),
                                    model.hidden, "residual");
  Value y = builder.moeCombine("h.*.moe.combine", down, gates, slots);
  if (experts.sharedInner == 0)
    return y;
  gate = builder.linear("h.*.shared.gate", x, experts.sharedInner, false);
  up = builder.linear("h.*.shared.up", x, experts.sharedInner, false);
  Value shared = builder.linear("h.*.shared.down",
                                builder.swiglu("h.*.shared.act", gate, up),
                                model.hidden, false, "residual");
  return builder.add("h.*.moe.add", y,
                     builder.tokenGate("h.*.shared.router", x, shared));
}

Value mlpBranch(ModelBuilder &builder, const Transformer &model, Value x) {
  Value y;
  if (model.experts.count > 0) {
    y = expertBranch(builder, model, x);
  } else if (model.gated) {
    Value gate = builder.linear("h.*.mlp.gate", x, model.inner, model.mlpBias);
    Value up = builder.linear("h.*.mlp.up", x, model.inner, model.mlpBias);
    Value wide = model.activation == Activation::Silu
                     ? builder.swiglu("h.*.mlp.act", gate, up)
                     : builder.mul("h.*.mlp.mul",
                                   builder.activation("h.*.mlp.act",
                                                      model.activation, gate),
                                   up);
    y = builder.linear("h.*.mlp.down", wide, model.hidden, model.mlpBias,
                       "residual");
  } else {
    Value wide = builder.linear("h.*.mlp.fc1", x, model.inner, model.mlpBias);
    Value bent = builder.activation("h.*.mlp.act", model.activation, wide);
    y = builder.linear("h.*.mlp.fc2", bent, model.hidden, model.mlpBias,
                       "residual");
  }
  return builder.dropout("h.*.mlp.drop", y, model.residualDropout);
}

Value block(ModelBuilder &builder, const Transformer &model, Value x) {
  auto normed = [&](StringRef label, Value value) {
    return norm(builder, model, label, value);
  };
  switch (model.form) {
  case BlockForm::preNorm: {
    Value attn = attentionBranch(builder, model, normed("h.*.ln_1", x));
    x = builder.add("h.*.attn.add", x, attn);
    Value mlp = mlpBranch(builder, model, normed("h.*.ln_2", x));
    return builder.add("h.*.mlp.add", x, mlp);
  }
  case BlockForm::postNorm: {
    Value attn = attentionBranch(builder, model, x);
    x = normed("h.*.ln_1", builder.add("h.*.attn.add", x, attn));
    Value mlp = mlpBranch(builder, model, x);
    return normed("h.*.ln_2", builder.add("h.*.mlp.add", x, mlp));
  }
  case BlockForm::sandwichNorm: {
    Value attn = attentionBranch(builder, model, normed("h.*.ln_1", x));
    x = builder.add("h.*.attn.add", x, normed("h.*.ln_1_post", attn));
    Value mlp = mlpBranch(builder, model, normed("h.*.ln_2", x));
    return builder.add("h.*.mlp.add", x, normed("h.*.ln_2_post", mlp));
  }
  case BlockForm::parallel:
  case BlockForm::parallelTwoNorms: {
    // The branches are added first. If both results are partial, one reduction
    // then suffices before the replicated residual stream is added.
    Value first = normed("h.*.ln_1", x);
    Value second =
        model.form == BlockForm::parallel ? first : normed("h.*.ln_2", x);
    Value attn = attentionBranch(builder, model, first);
    Value mlp = mlpBranch(builder, model, second);
    return builder.add("h.*.mlp.add", x,
                       builder.add("h.*.attn.add", attn, mlp));
  }
  }
  llvm_unreachable("all forms are listed");
}

Value embedPatches(ModelBuilder &builder, const Transformer &model) {
  Value patches = builder.features("patches", model.sequence, model.patchWidth);
  Value x = builder.linear("patch", patches, model.hidden, /*bias=*/true);
  x = builder.positions("wpe", builder.putFirst("cls_token", x),
                        model.positionRows);
  return builder.dropout("embed.drop", x, model.embedDropout);
}

Value embed(ModelBuilder &builder, const Transformer &model) {
  if (model.patchWidth > 0)
    return embedPatches(builder, model);
  Value ids = builder.tokens("ids", model.sequence, model.vocabulary);
  Value x = builder.embedding("wte", ids, model.rows(), model.hidden);
  if (model.embedScale != 1.0)
    x = builder.scale("embed.scale", x, model.embedScale);
  if (model.typeRows > 0) {
    Value types = builder.tokens("types", model.sequence, model.typeRows);
    Value typed = builder.embedding(
        "wtt", types, {model.typeRows, model.typeRows}, model.hidden);
    x = builder.add("embed.add", x, typed);
  }
  if (model.positionRows > 0)
    x = builder.positions("wpe", x, model.positionRows);
  if (model.embedNorm)
    x = norm(builder, model, "embed.norm", x);
  return builder.dropout("embed.drop", x, model.embedDropout);
}

Value head(ModelBuilder &builder, const Transformer &model, Value x) {
  if (model.finalNorm)
    x = norm(builder, model, "ln_f", x);
  if (model.patchWidth > 0) {
    Value logits = builder.logits("classifier", builder.takeFirst("cls", x),
                                  model.rows(), "", model.headBias);
    return builder.loss(logits, model.vocabulary);
  }
  if (model.maskedHead) {
    x = builder.linear("cls.transform", x, model.hidden, /*bias=*/true);
    x = builder.activation("cls.act", model.activation, x);
    x = norm(builder, model, "cls.norm", x);
  }
  Value logits = builder.logits("lm_head", x, model.rows(),
                                model.tied ? "wte.weight" : "", model.headBias);
  logits = builder.softcap("lm_head.cap", logits, model.logitSoftcap);
  return builder.loss(logits, model.vocabulary);
}

} // namespace

std::int64_t Experts::places(std::int64_t sequence) const {
  double even = static_cast<double>(chosen) * static_cast<double>(sequence) /
                static_cast<double>(count);
  // An expert receives each token at most once.
  return std::clamp<std::int64_t>(
      static_cast<std::int64_t>(std::ceil(even * capacityFactor)), 1, sequence);
}

//===----------------------------------------------------------------------===//
// Encoder-decoders
//
// The encoder's segments precede the decoder's. A decoder layer yields the
// encoder's result beside its own, because the next layer reads both. All
// layers of a stack share one table of relative position biases.
//===----------------------------------------------------------------------===//

namespace {

class Stack {
public:
  Stack(ModelBuilder &modelBuilder, const Transformer &transformer,
        StringRef stackName)
      : builder(modelBuilder), model(transformer), name(stackName) {}

  Value norm(StringRef part, Value x) {
    return builder.rmsNorm(label(part), x, model.epsilon);
  }

  /// Returns x plus the cross attention of norm(x) to `memory` or, if `memory`
  /// is null, plus the self-attention of norm(x).
  Value attend(StringRef part, StringRef normPart, Value x, Value memory,
               bool causal) {
    std::string at = label(part);
    Value own = norm(normPart, x);
    Value other = memory ? memory : own;
    std::int64_t width = model.heads * model.headDim;
    Value query = builder.linear(at + ".q", own, width, false);
    Value key = builder.linear(at + ".k", other, width, false);
    Value value = builder.linear(at + ".v", other, width, false);
    Value bias;
    if (!memory)
      bias =
          builder.parameter(name + ".bias.weight",
                            {model.decoder.distances, model.heads}, "normal");
    Value mixed =
        builder.attention(at + ".core", query, key, value, model.headDim,
                          causal, model.attentionScale, model.attentionDropout,
                          bias, model.decoder.maxDistance);
    Value y =
        builder.linear(at + ".proj", mixed, model.hidden, false, "residual");
    y = builder.dropout(at + ".drop", y, model.residualDropout);
    return builder.add(at + ".add", x, y);
  }

  Value feedForward(StringRef normPart, Value x) {
    std::string at = label("mlp");
    Value own = norm(normPart, x), wide;
    if (model.gated) {
      Value gate = builder.linear(at + ".gate", own, model.inner, false);
      Value up = builder.linear(at + ".up", own, model.inner, false);
      wide = builder.mul(
          at + ".mul", builder.activation(at + ".act", model.activation, gate),
          up);
    } else {
      wide = builder.activation(
          at + ".act", model.activation,
          builder.linear(at + ".fc1", own, model.inner, false));
    }
    wide = builder.dropout(at + ".act_drop", wide, model.residualDropout);
    Value y = builder.linear(at + (model.gated ? ".down" : ".fc2"), wide,
                             model.hidden, false, "residual");
    y = builder.dropout(at + ".drop", y, model.residualDropout);
    return builder.add(at + ".add", x, y);
  }

private:
  std::string label(StringRef part) const { return name + ".*." + part.str(); }

  ModelBuilder &builder;
  const Transformer &model;
  const std::string name;
};

} // namespace

static void buildEncoderDecoder(ModelBuilder &builder,
                                const Transformer &model) {
  auto embedded = [&](StringRef ids, std::int64_t sequence, StringRef label,
                      StringRef drop) {
    Value x = builder.embedding(label,
                                builder.tokens(ids, sequence, model.vocabulary),
                                model.rows(), model.hidden, "wte.weight");
    return builder.dropout(drop, x, model.embedDropout);
  };
  builder.beginSegment("embed");
  builder.endSegment(embedded("ids", model.sequence, "wte", "embed.drop"));

  Stack encoder(builder, model, "encoder"), decoder(builder, model, "decoder");
  Value x = builder.beginSegment("encoder", model.layers)[0];
  x = encoder.attend("attn", "ln_1", x, Value(), /*causal=*/false);
  builder.endSegment(encoder.feedForward("ln_2", x));

  x = builder.beginSegment("bridge")[0];
  x = builder.rmsNorm("encoder.ln_f", x, model.epsilon);
  Value memory = builder.dropout("encoder.drop", x, model.embedDropout);
  Value y = embedded("decoder_ids", model.decoder.sequence, "decoder.wte",
                     "decoder.drop");
  builder.endSegment({y, memory});

  ValueRange carried = builder.beginSegment("decoder", model.decoder.layers);
  y = carried[0];
  memory = carried[1];
  y = decoder.attend("attn", "ln_1", y, Value(), /*causal=*/true);
  y = decoder.attend("cross", "ln_2", y, memory, /*causal=*/false);
  builder.endSegment({decoder.feedForward("ln_3", y), memory});

  y = builder.beginSegment("head")[0];
  y = builder.rmsNorm("ln_f", y, model.epsilon);
  y = builder.dropout("head.drop", y, model.embedDropout);
  if (model.decoder.logitScale != 1.0)
    y = builder.scale("head.scale", y, model.decoder.logitScale);
  Value logits = builder.logits("lm_head", y, model.rows(),
                                model.tied ? "wte.weight" : "", false);
  builder.endChain(builder.loss(logits, model.vocabulary));
  (*builder.module)
      ->setAttr(kLayersAttrName, builder.ops.getI64IntegerAttr(
                                     model.layers + model.decoder.layers));
}

void buildTransformer(ModelBuilder &builder, const Transformer &model) {
  if (model.decoder.layers > 0)
    return buildEncoderDecoder(builder, model);
  builder.beginSegment("embed");
  builder.endSegment(embed(builder, model));
  Value x = builder.beginSegment("h", model.layers)[0];
  builder.endSegment(block(builder, model, x));
  x = builder.beginSegment("head")[0];
  builder.endChain(head(builder, model, x));
  (*builder.module)
      ->setAttr(kLayersAttrName, builder.ops.getI64IntegerAttr(model.layers));
}

} // namespace mtplan::ir
