//===- encoder_decoder.cpp - Encoder-decoder models -------------*- C++ -*-===//
//
// The chain runs through the encoder and then through the decoder. Decoder
// layers pass the encoder's result on beside their own, because each of them
// reads it. All layers of a stack read one table of biases by distance.
//
//===----------------------------------------------------------------------===//

#include "ir/model/transformer.h"

using namespace mlir;

namespace mtplan::ir {

namespace {

/// Builds the layers of one stack, which share settings and a table of biases.
class Stack {
public:
  Stack(ModelBuilder &modelBuilder, const Transformer &transformer,
        llvm::StringRef stackName)
      : builder(modelBuilder), model(transformer), name(stackName) {}

  Value norm(llvm::StringRef part, Value x) {
    return builder.rmsNorm(label(part), x, model.epsilon);
  }

  /// Returns x plus attention of norm(x) to `memory`, or to itself if `memory`
  /// is null.
  Value attend(llvm::StringRef part, llvm::StringRef normPart, Value x,
               Value memory, bool causal) {
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

  Value feedForward(llvm::StringRef normPart, Value x) {
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
  std::string label(llvm::StringRef part) const {
    return name + ".*." + part.str();
  }

  ModelBuilder &builder;
  const Transformer &model;
  const std::string name;
};

} // namespace

void buildEncoderDecoder(ModelBuilder &builder, const Transformer &model) {
  auto embedded = [&](llvm::StringRef ids, std::int64_t sequence,
                      llvm::StringRef label, llvm::StringRef drop) {
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

} // namespace mtplan::ir
