//===- transformer.h - The description of a transformer ---------*- C++ -*-===//
//
// One struct describes the models of all families. The reader of a family sets
// the members of the struct (decoder_families.cpp, encoder_families.cpp), and
// buildTransformer() builds the model.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_MODEL_TRANSFORMER_H
#define MTPLAN_IR_MODEL_TRANSFORMER_H

#include <cstdint>

#include "ir/model/builder.h"

namespace mtplan::ir {

/// States the positions of a block's norms, and the inputs of its two branches.
enum class BlockForm : std::uint8_t {
  preNorm,  ///< x + attn(ln_1 x), then x + mlp(ln_2 x)
  postNorm, ///< ln_1(x + attn x), then ln_2(x + mlp x)
  /// Computes x + ln_1_post(attn(ln_1 x)), then x + ln_2_post(mlp(ln_2 x)).
  sandwichNorm,
  parallel,        ///< x + (attn(ln_1 x) + mlp(ln_1 x))
  parallelTwoNorms ///< x + (attn(ln_1 x) + mlp(ln_2 x))
};

/// Describes the experts that replace the MLP. Each expert is a SwiGLU without
/// biases.
struct Experts {
  std::int64_t count = 0;  ///< 0 for one MLP for all tokens
  std::int64_t chosen = 1; ///< experts per token
  std::int64_t inner = 1;
  /// Sets the capacity of an expert, relative to an even distribution of
  /// tokens. Tokens beyond the capacity are dropped.
  double capacityFactor = 1.25;
  bool normalise = true; ///< the gates of the chosen experts sum to 1
  double balance = 0.0;  ///< coefficient of the auxiliary loss, or 0
  /// Holds the width of the shared expert, or 0 for none. The shared expert is
  /// a SwiGLU that serves every token. A sigmoid gate, one number per token,
  /// scales its result.
  std::int64_t sharedInner = 0;

  std::int64_t places(std::int64_t sequence) const;
};

/// Describes the second half of an encoder-decoder (Raffel et al. 2020).
struct Decoder {
  std::int64_t layers = 0; ///< 0 for a model without a second stack
  std::int64_t sequence = 1;
  /// `distances` is the number of rows of each stack's table of relative
  /// position biases. All distances of `maxDistance` or more share a row.
  std::int64_t distances = 32, maxDistance = 128;
  double logitScale = 1.0; ///< multiplies the logits
};

struct Transformer {
  std::int64_t sequence = 1, layers = 1;
  std::int64_t hidden = 1, inner = 1;
  std::int64_t heads = 1, kvHeads = 1, headDim = 1;
  std::int64_t vocabulary = 1, paddedVocabulary = 1;
  Padded rows() const { return {paddedVocabulary, vocabulary}; }

  /// Holds the number of features of an image patch, or 0 for a model of
  /// tokens. The first position of a sample holds no patch and is replaced by
  /// the class token.
  std::int64_t patchWidth = 0;
  std::int64_t positionRows = 0; ///< number of learned positions, or 0
  std::int64_t typeRows = 0;     ///< number of token types, or 0
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
  bool gated = false; ///< the MLP is gated by `activation`
  Activation activation = Activation::GeluTanh;
  bool queryBias = true, projBias = true, mlpBias = true;

  bool maskedHead = false; ///< BERT's transform precedes the logits
  bool tied = true, headBias = false;

  double embedScale = 1.0; ///< multiplies the embeddings
  double attentionScale = 1.0;
  double attentionSoftcap = 0.0, logitSoftcap = 0.0; ///< 0 for none
  double attentionDropout = 0.0, residualDropout = 0.0, embedDropout = 0.0;
};

void buildTransformer(ModelBuilder &builder, const Transformer &model);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_TRANSFORMER_H
