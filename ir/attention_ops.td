//===- attention_ops.td - Attention and rotary positions ------------------===//

#ifndef MTPLAN_IR_ATTENTION_OPS
#define MTPLAN_IR_ATTENTION_OPS

include "compute_ops.td"

def Mtp_AttentionOp : Mtp_ComputeOpBase<"attention"> {
  let summary = "Softmax attention of all heads; scores are not stored";
  let description = [{
    Queries are `[b, s, heads * head_dim]`, and keys and values are
    `[b, s, kv_heads * head_dim]`. The shapes give the number of heads, and
    consecutive heads share a key/value head. Scores are scaled by `scale` and,
    if `causal`, masked for keys after the query. Dropout with `rate` applies to
    the softmax of the scores. `mask` has the same meaning as in `mtp.dropout`,
    and elements are indexed by [b, heads, query, key], in groups of 32 keys
    (runtime/random/draws.h). `lse` is the logarithm of each row's sum of
    exponentials.

    `bias`, if given, is a table [buckets, heads] of numbers that are added to
    the scores (Raffel et al. 2020, section 2.1). The distance of key and query
    determines the bucket. Each short distance has its own bucket. For longer
    distances, up to `max_distance`, the bucket number grows with the logarithm
    of the distance. Without `causal`, the first half of the buckets is for keys
    up to the query's position and the second half for keys after it.

    `softcap`, if given, bounds the scaled scores before they are masked: a
    score x becomes softcap * tanh(x / softcap), as in Gemma 2.

    Samples, key/value heads and query positions can be split. Keys and values
    are replicated over ranks that split query positions. The causal mask
    compares positions in the whole sequence, even on a rank that holds only a
    part of the sequence.

    Constraints:
    - queries, keys and values have three dimensions and the same number of
      samples; keys and values have the same type;
    - widths are multiples of `head_dim`; the number of heads is a multiple of
      the number of key/value heads;
    - the result has the type of the queries; `lse` is [b, s, heads];
    - `rate` is at least 0 and below 1;
    - the bias has two dimensions, at least four rows and a column per head;
    - `max_distance` is at least 2, and is given if and only if the bias is
      given;
    - `softcap` is above 0, and is not given together with a bias.
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
    Computes the gradients from the queries, the keys, the values, the output,
    `lse`, and the gradient of the output (Dao et al. 2022, algorithm 4). If
    query positions are split, the gradients of keys, values and the bias are
    partial. If samples are split, the gradient of the bias is partial.

    Constraints:
    - the constraints of `mtp.attention` hold;
    - the gradient has the type of the queries;
    - the results have the types of queries, keys and values, and of the bias if
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
    (GPT-NeoX, Llama). `inverse` rotates by the negative angle, which computes
    the gradient. The operator is linear.

    Constraints:
    - the input has three dimensions, the last a multiple of `head_dim`;
    - `rotary_dim` is even, positive and at most `head_dim`; `theta` is positive.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       I64Attr:$head_dim, I64Attr:$rotary_dim, F64Attr:$theta,
                       UnitAttr:$interleaved, UnitAttr:$inverse);
  let types = "type($result)";
}

#endif // MTPLAN_IR_ATTENTION_OPS
