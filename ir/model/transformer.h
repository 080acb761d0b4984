//===- transformer.h - The transformers we know, as one record --*- C++ -*-===//
//
// Families differ in a dozen choices; each reader fills this record in and one
// builder writes the model down. Reading order for a new family: this file,
// then one of gpt2.cpp, gptj.cpp, gpt_neox.cpp, bert.cpp, llama.cpp, vit.cpp,
// t5.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_MODEL_TRANSFORMER_H
#define MTPLAN_IR_MODEL_TRANSFORMER_H

#include <cstdint>

#include "ir/model/builder.h"

namespace mtplan::ir {

/// Where a block normalises, and what its two branches read.
enum class BlockForm : std::uint8_t {
  preNorm,         ///< x + attn(ln_1 x), then x + mlp(ln_2 x)
  postNorm,        ///< ln_1(x + attn x), then ln_2(x + mlp x)
  parallel,        ///< x + (attn(ln_1 x) + mlp(ln_1 x))
  parallelTwoNorms ///< x + (attn(ln_1 x) + mlp(ln_2 x))
};

/// Experts in place of the MLP: SwiGLU each, without biases.
struct Experts {
  std::int64_t count = 0;  ///< 0: one MLP for all tokens
  std::int64_t chosen = 1; ///< per token
  std::int64_t inner = 1;
  /// Room at an expert over what it needs if all are chosen evenly; who finds
  /// none is dropped.
  double capacityFactor = 1.25;
  bool normalise = true;        ///< gates of the chosen sum to 1
  double balance = 0.0;         ///< coefficient of the auxiliary loss; 0: none
  std::int64_t sharedInner = 0; ///< of an MLP that every token goes to, by a
                                ///< gate of its own; 0: none

  /// Places of one expert for one sample.
  std::int64_t places(std::int64_t sequence) const;
};

/// The second half of an encoder-decoder (Raffel et al. 2020).
struct Decoder {
  std::int64_t layers = 0; ///< 0: there is none
  std::int64_t sequence = 1;
  /// Rows of each half's table of biases by distance, and the distance from
  /// which all are one.
  std::int64_t distances = 32, maxDistance = 128;
  double logitScale = 1.0; ///< of what the logits are made of
};

struct Transformer {
  std::int64_t sequence = 1, layers = 1;
  std::int64_t hidden = 1, inner = 1;
  std::int64_t heads = 1, kvHeads = 1, headDim = 1;
  std::int64_t vocabulary = 1, paddedVocabulary = 1;
  Padded rows() const { return {paddedVocabulary, vocabulary}; }

  /// Features of a piece of an image; 0: tokens. A sample's first piece is
  /// blank and makes room for the class token.
  std::int64_t patchWidth = 0;
  std::int64_t positionRows = 0; ///< learned positions; 0: rotary instead
  std::int64_t typeRows = 0;     ///< token types; 0: none
  std::int64_t rotaryDim = 0;
  double theta = 10000.0;
  bool interleaved = false;

  BlockForm form = BlockForm::preNorm;
  bool causal = true;
  bool rms = false;       ///< RMS norm instead of layer norm
  bool embedNorm = false; ///< normalises the embedding
  bool finalNorm = true;
  double epsilon = 1.0e-5;

  Experts experts;
  Decoder decoder;
  bool gated = false; ///< SwiGLU, with a decoder gated by `activation`
  Activation activation = Activation::GeluTanh;
  bool queryBias = true, projBias = true, mlpBias = true;

  bool maskedHead = false; ///< BERT's transform before the logits
  bool tied = true, headBias = false;

  double attentionScale = 1.0;
  double attentionDropout = 0.0, residualDropout = 0.0, embedDropout = 0.0;
};

/// Writes embedding, blocks, head and loss; with a decoder both stacks.
void buildTransformer(ModelBuilder &builder, const Transformer &model);
void buildEncoderDecoder(ModelBuilder &builder, const Transformer &model);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_TRANSFORMER_H
