//===- attention_ops.td - Attention and rotary positions ------------------===//

#ifndef MTPLAN_IR_ATTENTION_OPS
#define MTPLAN_IR_ATTENTION_OPS

include "compute_ops.td"

def Mtp_AttentionOp : Mtp_ComputeOpBase<"attention"> {
  let summary = "Softmax attention of all heads; scores are not stored";
  let description = [{
    Queries are `[b, s, heads * head_dim]`, keys and values are
    `[b, s, kv_heads * head_dim]`. The shapes give the number of heads, and
    consecutive heads share a key/value head. Scores are scaled by `scale` and
    masked to the past if `causal`. Dropout with `rate` applies to their softmax
    (see `mtp.dropout` for `mask`; the element index runs over
    [b, heads, query, key], in groups of 32 keys: runtime/random/draws.h). `lse`
    is the log of each row's sum of exponentials.

    `bias`, if given, is a table [distances, heads] of numbers that are added to
    the scores by the distance of key and query (Raffel et al. 2020, section
    2.1). Each short distance has a row. Longer ones share rows whose number
    grows with the logarithm of the distance up to `max_distance`. Without
    `causal`, the first half of the rows is for keys up to the query's position
    and the second half for keys after it.

    `softcap`, if given, bounds the scaled scores before they are masked: a
    score x becomes softcap * tanh(x / softcap), as in Gemma 2.

    Samples, key/value heads and query positions can be split. Keys and values
    are replicated over ranks that split query positions. Positions are global,
    so the causal mask is, too.

    Constraints:
    - three dimensions each; keys and values have one type; same samples;
    - widths are multiples of `head_dim`; the number of heads is a multiple of
      that of key/value heads;
    - the result has the type of the queries; `lse` is [b, s, heads];
    - `rate` is at least 0 and below 1;
    - the bias has two dimensions, at least four rows and a column per head; it
      comes with a `max_distance` of at least 2, which is not there without it;
    - `softcap` is above 0, and there is no bias beside it.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$query,
                       AnyRankedTensor:$key, AnyRankedTensor:$value,
                       Optional<AnyRankedTensor>:$bias,
                       I64Attr:$head_dim, BoolAttr:$causal, F64Attr:$scale,
                       F64Attr:$rate, StrAttr:$mask,
                       OptionalAttr<I64Attr>:$max_distance,
                       OptionalAttr<Mtp_PositiveF64>:$softcap);
  let results = (outs AnyRankedTensor:$result, AnyRankedTensor:$lse);
  let inputs = "$query `,` $key `,` $value (`,` $bias^)?";
}

def Mtp_AttentionGradOp : Mtp_GradientOpBase<"attention_grad"> {
  let summary = "Gradients of attention; the scores are recomputed";
  let description = [{
    Computes the gradients from queries, keys, values, the output, its `lse` and
    its gradient (Dao et al. 2022, algorithm 4). If query positions are split,
    the gradients of keys and values are partial. The gradient of the bias, if
    there is one, is partial also if samples are split.

    Constraints:
    - as for `mtp.attention`; the gradient has the type of the queries, and the
      results have the types of queries, keys and values, and of the bias if
      there is one.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$query,
                       AnyRankedTensor:$key, AnyRankedTensor:$value,
                       AnyRankedTensor:$output, AnyRankedTensor:$lse,
                       AnyRankedTensor:$gradient,
                       Optional<AnyRankedTensor>:$bias,
                       I64Attr:$head_dim, BoolAttr:$causal, F64Attr:$scale,
                       F64Attr:$rate, StrAttr:$mask,
                       OptionalAttr<I64Attr>:$max_distance,
                       OptionalAttr<Mtp_PositiveF64>:$softcap);
  let results = (outs AnyRankedTensor:$query_gradient,
                      AnyRankedTensor:$key_gradient,
                      AnyRankedTensor:$value_gradient,
                      Optional<AnyRankedTensor>:$bias_gradient);
  let inputs = "$query `,` $key `,` $value `,` $output `,` $lse `,` "
               "$gradient (`,` $bias^)?";
}

def Mtp_RopeOp : Mtp_ComputeOpBase<"rope", [SameOperandsAndResultType]> {
  let costClass = "rope";
  let summary = "Rotates pairs of features by the position";
  let description = [{
    Rotates the first `rotary_dim` features of every head of `head_dim`, in
    pairs, by position * theta^(-2i/rotary_dim) (Su et al. 2021). The pairs are
    (2i, 2i + 1) if `interleaved` (GPT-J), otherwise (i, i + rotary_dim/2)
    (GPT-NeoX, Llama). `inverse` rotates back, which is the gradient. The
    operator is linear.

    Constraints:
    - three dimensions, the last a multiple of `head_dim`;
    - `rotary_dim` is even, positive and at most `head_dim`; `theta` is positive.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       I64Attr:$head_dim, I64Attr:$rotary_dim, F64Attr:$theta,
                       UnitAttr:$interleaved, UnitAttr:$inverse);
  let types = "type($result)";
}

#endif // MTPLAN_IR_ATTENTION_OPS
