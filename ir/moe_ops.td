//===- moe_ops.td - Mixture of experts ------------------------------------===//
//
// Every token goes to the `top_k` experts with the largest logits (Shazeer et
// al. 2017). Shapes stay static: an expert has `c` places per sample, filled in
// a fixed order, and tokens that find none left are dropped (Lepikhin et al.
// 2020, samples being the groups). No sample's places depend on another's
// tokens, so that samples split freely.
//
// Which token stands where is one tensor, the slots [b, s, e]: the place of a
// token in the queue of an expert, or -1 where it does not go there. A place of
// `c` or more is none. That tensor and the gates beside it are cut along e with
// the experts, so that expert parallelism needs no operator of its own: a
// dispatch split over e makes its slice, a combine split over e a term of the
// sum, and samples split on one side and experts on the other are an
// all-to-all.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_MOE_OPS
#define MTPLAN_IR_MOE_OPS

include "compute_ops.td"

def Mtp_MoeGateOp : Mtp_ComputeOpBase<"moe_gate", [SameOperandsAndResultType]> {
  let summary = "Share of each expert in a token's result; zero if not chosen";
  let description = [{
    Softmax over the experts, of which the `top_k` largest stay; with
    `normalise` they are divided by their sum (Mixtral). Of equal logits the
    first is chosen. Experts cannot be split, samples and positions can.

    Example:

    ```mlir
    %g = mtp.moe_gate "h.*.moe.gate"(%logits) {top_k = 2 : i64, normalise} : tensor<8x64x16xbf16>
    ```

    Constraints:
    - three dimensions: samples, positions, experts;
    - `top_k` is from 1 to the number of experts.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$logits,
                       I64Attr:$top_k, UnitAttr:$normalise);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $label `(` $logits `)` attr-dict `:` type($result)
  }];
}

def Mtp_MoeGateGradOp
    : Mtp_ComputeOpBase<"moe_gate_grad", [SameOperandsAndResultType]> {
  let summary = "Gradient of the gates with respect to the logits";
  let description = [{
    The choice is made anew and taken as constant.

    Constraints:
    - three dimensions: samples, positions, experts;
    - `top_k` is from 1 to the number of experts.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$logits,
                       AnyRankedTensor:$gradient, I64Attr:$top_k,
                       UnitAttr:$normalise);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $label `(` $logits `,` $gradient `)` attr-dict `:` type($result)
  }];
}

def Mtp_MoeSlotsOp : Mtp_ComputeOpBase<"moe_slots"> {
  let summary = "Place of each token in the queue of each expert, or -1";
  let description = [{
    Within a sample: all first choices come before all second ones, and equal
    choices in the order of positions. So neither positions nor experts can be
    split. There is no end to a queue here; where it is cut, the number of
    places of `mtp.moe_dispatch` says.

    Constraints:
    - three dimensions: samples, positions, experts;
    - `top_k` is from 1 to the number of experts;
    - the result has the logits' shape and is of integers.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$logits, I64Attr:$top_k);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $label `(` $logits `)` attr-dict `:` functional-type(operands, results)
  }];
}

def Mtp_MoeDispatchOp : Mtp_ComputeOpBase<"moe_dispatch"> {
  let summary = "Copies tokens to the places they have at experts";
  let description = [{
    `result[e, b, slots[b, s, e], :] = input[b, s, :]`; places nobody has are
    zero. Linear in the input. Positions split leave a sum, for a place has one
    token.

    Constraints:
    - the input has three dimensions;
    - slots are integers [samples, positions, experts];
    - the result is [experts, samples, places, features].
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$slots);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $label `(` $input `,` $slots `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

def Mtp_MoeDispatchGradOp : Mtp_ComputeOpBase<"moe_dispatch_grad"> {
  let summary = "Sums for each token what its places hold";
  let description = [{
    `result[b, s, :]` is the sum over the experts of
    `gradient[e, b, slots[b, s, e], :]`.

    Constraints:
    - the result has three dimensions;
    - slots are integers [samples, positions, experts];
    - the gradient is [experts, samples, places, features].
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$slots,
                       AnyRankedTensor:$gradient);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $label `(` $slots `,` $gradient `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

def Mtp_MoeCombineOp : Mtp_ComputeOpBase<"moe_combine"> {
  let summary = "Adds the experts' results up, each by its gate";
  let description = [{
    `result[b, s, :]` is the sum over the experts of
    `gates[b, s, e] * input[e, b, slots[b, s, e], :]`; what was dropped adds
    nothing. Experts split leave a sum.

    Constraints:
    - the result has three dimensions;
    - slots are integers [samples, positions, experts];
    - the input is [experts, samples, places, features];
    - the gates have the shape of the slots.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$gates, AnyRankedTensor:$slots);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $label `(` $input `,` $gates `,` $slots `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

def Mtp_MoeCombineGradOp : Mtp_ComputeOpBase<"moe_combine_grad"> {
  let summary = "Gradients of the experts' results and of the gates";
  let description = [{
    The gradient of the experts' results lacks positions, that of the gates
    features: splits of those leave sums.

    Constraints:
    - the gradient has three dimensions;
    - slots are integers [samples, positions, experts];
    - the input is [experts, samples, places, features];
    - the gates have the shape of the slots;
    - the results have the types of input and gates.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$gates, AnyRankedTensor:$slots,
                       AnyRankedTensor:$gradient);
  let results = (outs AnyRankedTensor:$input_gradient,
                      AnyRankedTensor:$gates_gradient);
  let assemblyFormat = [{
    $label `(` $input `,` $gates `,` $slots `,` $gradient `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

def Mtp_BalanceLossOp : Mtp_ComputeOpBase<"balance_loss"> {
  let summary = "Auxiliary loss that is least if experts are chosen evenly";
  let description = [{
    Of one sample: `coefficient` times the number of experts times the sum over
    experts of (times it was chosen / positions) * (mean probability), as in
    Fedus et al. 2021, equation 4, for one choice. Samples are weighted by their
    share in `count`, the tokens of the step. It is added to the step's loss: it
    may only be accumulated, and its gradient is 1. Dropped tokens count.

    Constraints:
    - three dimensions: samples, positions, experts;
    - `top_k` is from 1 to the number of experts;
    - count and the result are scalars.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$logits,
                       AnyRankedTensor:$count, I64Attr:$top_k,
                       F64Attr:$coefficient);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $label `(` $logits `,` $count `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

def Mtp_BalanceLossGradOp : Mtp_ComputeOpBase<"balance_loss_grad"> {
  let summary = "Gradient of the auxiliary loss with respect to the logits";
  let description = [{
    How often an expert is chosen has no slope; its probabilities do.

    Constraints:
    - three dimensions: samples, positions, experts;
    - `top_k` is from 1 to the number of experts;
    - count is a scalar;
    - the result has the logits' type.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$logits,
                       AnyRankedTensor:$count, I64Attr:$top_k,
                       F64Attr:$coefficient);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $label `(` $logits `,` $count `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

#endif // MTPLAN_IR_MOE_OPS
