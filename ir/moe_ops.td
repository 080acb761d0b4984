//===- moe_ops.td - Mixture of experts ------------------------------------===//
//
// Every token goes to the `top_k` experts with the largest logits (Shazeer et
// al. 2017). Shapes are static: an expert has a capacity of `c` tokens per
// sample, which is filled in a fixed order, and tokens beyond the capacity are
// dropped (Lepikhin et al. 2020, with samples as groups). The slots of a sample
// do not depend on the tokens of other samples, so samples can be sharded.
//
// The tensor of slots [b, s, e] (samples, positions, experts) holds the
// position of each token in the queue of each expert, or -1 for experts that
// the token is not routed to. A slot of `c` or more is beyond the capacity.
// Slots and gates are sharded along e like the experts, so expert parallelism
// needs no operator of its own. A dispatch sharded over e returns the slots of
// a rank's experts, and a combine sharded over e returns a partial sum. A
// reshard between samples and experts becomes an all-to-all.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_MOE_OPS
#define MTPLAN_IR_MOE_OPS

include "compute_ops.td"

def Mtp_MoeGateOp : Mtp_ComputeOpBase<"moe_gate", [SameOperandsAndResultType]> {
  let summary = "Weight of each expert in a token's result; zero if not chosen";
  let description = [{
    Keeps the `top_k` largest values of a softmax over the experts. With
    `normalise`, these values are divided by their sum (Mixtral). Among equal
    logits, the expert with the lowest index is chosen. Samples and positions
    can be split, experts cannot.

    Example:

    ```mlir
    %g = mtp.moe_gate "h.*.moe.gate"(%logits) {top_k = 2 : i64, normalise} : tensor<8x64x16xbf16>
    ```

    Constraints:
    - the logits have three dimensions: samples, positions, experts;
    - `top_k` is from 1 to the number of experts.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$logits,
                       I64Attr:$top_k, UnitAttr:$normalise);
  let inputs = "$logits";
  let types = "type($result)";
}

def Mtp_MoeGateGradOp
    : Mtp_GradientOpBase<"moe_gate_grad", [SameOperandsAndResultType]> {
  let summary = "Gradient of the gates with respect to the logits";
  let description = [{
    The choice of experts is recomputed and treated as a constant.

    Constraints:
    - the logits have three dimensions: samples, positions, experts;
    - `top_k` is from 1 to the number of experts.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$logits,
                       AnyRankedTensor:$gradient, I64Attr:$top_k,
                       UnitAttr:$normalise);
  let inputs = "$logits `,` $gradient";
  let types = "type($result)";
}

def Mtp_MoeSlotsOp : Mtp_ComputeOpBase<"moe_slots"> {
  let summary = "Position of each token in the queue of each expert, or -1";
  let description = [{
    In the queue of an expert, the tokens of a sample whose first choice is the
    expert come before the tokens whose second choice is the expert, and so on;
    tokens with the same choice are in the order of their positions. Therefore
    neither positions nor experts can be split. A queue may be longer than the
    capacity; `mtp.moe_dispatch` drops the tokens beyond the capacity.

    Constraints:
    - the logits have three dimensions: samples, positions, experts;
    - `top_k` is from 1 to the number of experts;
    - the result has the logits' shape and integer elements.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$logits, I64Attr:$top_k);
  let inputs = "$logits";
}

def Mtp_MoeDispatchOp : Mtp_ComputeOpBase<"moe_dispatch"> {
  let summary = "Copies tokens to their slots at the experts";
  let description = [{
    `result[e, b, slots[b, s, e], :] = input[b, s, :]`, and slots without a
    token are zero. The operator is linear in the input. Splitting positions
    makes the result partial: the token of a slot is on one rank, and the slot
    is zero on all other ranks.

    Constraints:
    - the input has three dimensions;
    - slots are integers [samples, positions, experts];
    - the result is [experts, samples, capacity, features].
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$slots);
  let inputs = "$input `,` $slots";
}

def Mtp_MoeDispatchGradOp : Mtp_GradientOpBase<"moe_dispatch_grad"> {
  let summary = "Sums the gradients of the slots of each token";
  let description = [{
    `result[b, s, :]` is the sum over the experts of
    `gradient[e, b, slots[b, s, e], :]`.

    Constraints:
    - the result has three dimensions;
    - slots are integers [samples, positions, experts];
    - the gradient is [experts, samples, capacity, features].
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$slots,
                       AnyRankedTensor:$gradient);
  let inputs = "$slots `,` $gradient";
}

def Mtp_MoeCombineOp : Mtp_ComputeOpBase<"moe_combine"> {
  let summary = "Adds up the experts' results, each multiplied by its gate";
  let description = [{
    `result[b, s, :]` is the sum over the experts of `gates[b, s, e] * input[e,
    b, slots[b, s, e], :]`. Dropped tokens add nothing. Splitting experts makes
    the result partial.

    Constraints:
    - the result has three dimensions;
    - slots are integers [samples, positions, experts];
    - the input is [experts, samples, capacity, features];
    - the gates have the shape of the slots.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$gates, AnyRankedTensor:$slots);
  let inputs = "$input `,` $gates `,` $slots";
}

def Mtp_MoeCombineGradOp : Mtp_GradientOpBase<"moe_combine_grad"> {
  let summary = "Gradients of the experts' results and of the gates";
  let description = [{
    The gradient of the experts' results is partial if positions are split, and
    the gradient of the gates is partial if features are split.

    Constraints:
    - the gradient has three dimensions;
    - slots are integers [samples, positions, experts];
    - the input is [experts, samples, capacity, features];
    - the gates have the shape of the slots;
    - the results have the types of input and gates.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$gates, AnyRankedTensor:$slots,
                       AnyRankedTensor:$gradient);
  let results = (outs AnyRankedTensor:$input_gradient,
                      AnyRankedTensor:$gates_gradient);
  let inputs = "$input `,` $gates `,` $slots `,` $gradient";
}

def Mtp_BalanceLossOp : Mtp_ComputeOpBase<"balance_loss"> {
  let summary = "Auxiliary loss that favours an even choice of experts";
  let description = [{
    The loss of one sample is `coefficient * E * sum_e(f_e * p_e)`, where `E` is
    the number of experts, `f_e` is the fraction of tokens that choose expert e,
    and `p_e` is the mean probability of expert e. With a `top_k` of 1, this is
    equation 4 of Fedus et al. 2021. A sample's weight is its share of `count`,
    the number of tokens of the step. The loss is added to the step's loss.
    Therefore only `mtp.accumulate` may read the loss, and the gradient of the
    loss is 1. Tokens that exceed an expert's capacity are included in `f_e`.

    Constraints:
    - the logits have three dimensions: samples, positions, experts;
    - `top_k` is from 1 to the number of experts;
    - count and the result are scalars.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$logits,
                       AnyRankedTensor:$count, I64Attr:$top_k,
                       F64Attr:$coefficient);
  let inputs = "$logits `,` $count";
}

def Mtp_BalanceLossGradOp : Mtp_GradientOpBase<"balance_loss_grad"> {
  let summary = "Gradient of the auxiliary loss with respect to the logits";
  let description = [{
    The number of times that an expert is chosen is treated as a constant, so
    that only the probabilities have a gradient.

    Constraints:
    - the logits have three dimensions: samples, positions, experts;
    - `top_k` is from 1 to the number of experts;
    - count is a scalar;
    - the result has the logits' type.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$logits,
                       AnyRankedTensor:$count, I64Attr:$top_k,
                       F64Attr:$coefficient);
  let inputs = "$logits `,` $count";
}

#endif // MTPLAN_IR_MOE_OPS
