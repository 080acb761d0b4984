//===- loss_ops.td - Cross entropy in three small reductions --------------===//
//
// These operators compute the softmax cross entropy over a vocabulary that may
// be sharded. The maximum, the sum of exponentials and the target's logit each
// consist of one number per token, so a sharded vocabulary costs three
// reductions of this size and no all-gather of the logits (Shoeybi et al. 2019,
// section 3). Logits with an index of `classes` or more are padding and are
// ignored. Tokens with a negative target are ignored, too.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_LOSS_OPS
#define MTPLAN_IR_LOSS_OPS

include "compute_ops.td"

class Mtp_LossPartOp<string mnemonic> : Mtp_NoGradientOpBase<mnemonic,
    "\"is differentiated only as a part of mtp.token_loss\"">;

def Mtp_VocabMaxOp : Mtp_LossPartOp<"vocab_max"> {
  let costClass = "logitsRead";
  let summary = "Largest logit of each token";
  let description = [{
    Constraints:
    - the result has the logits' shape without the last dimension;
    - `classes` is at least 1.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$logits,
                       I64Attr:$classes);
  let inputs = "$logits";
}

def Mtp_VocabSumExpOp : Mtp_LossPartOp<"vocab_sum_exp"> {
  let costClass = "logitsRead";
  let summary = "Sum over the classes of exp(logit - maximum)";
  let description = [{
    Constraints:
    - maximum and result have the logits' shape without the last dimension;
    - `classes` is at least 1.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$logits,
                       AnyRankedTensor:$maximum, I64Attr:$classes);
  let inputs = "$logits `,` $maximum";
}

def Mtp_VocabPickOp : Mtp_LossPartOp<"vocab_pick"> {
  let summary = "Logit of each token's target";
  let description = [{
    The result is zero for a token without a target, and for a target whose
    logit is on another rank.

    Constraints:
    - targets and result have the logits' shape without the last dimension.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$logits,
                       AnyRankedTensor:$targets);
  let inputs = "$logits `,` $targets";
}

def Mtp_TokenLossOp : Mtp_ComputeOpBase<"token_loss"> {
  let summary = "Mean cross entropy over the tokens of a step";
  let description = [{
    The loss is `sum(log(sum_exp) + maximum - picked) / count` over the tokens
    with a target, where `count` is the number of such tokens in the whole step.
    `maximum`, `sum_exp` and `picked` are already reduced over the vocabulary.

    Constraints:
    - maximum, sum_exp, picked and targets have the same shape;
    - count and the result are scalars.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$maximum,
                       AnyRankedTensor:$sum_exp, AnyRankedTensor:$picked,
                       AnyRankedTensor:$targets, AnyRankedTensor:$count);
  let inputs = "$maximum `,` $sum_exp `,` $picked `,` $targets `,` $count";
}

def Mtp_CrossEntropyGradOp : Mtp_GradientOpBase<"cross_entropy_grad"> {
  let costClass = "logitsGradient";
  let summary = "Gradient of the cross entropy with respect to the logits";
  let description = [{
    The gradient is `(exp(logit - maximum) / sum_exp - [class is target]) /
    count` for tokens with a target. It is zero for other tokens and for padding
    classes.

    Constraints:
    - the result has the logits' shape;
    - maximum, sum_exp and targets have the logits' shape without the last
      dimension;
    - count is a scalar; `classes` is at least 1.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$logits,
                       AnyRankedTensor:$maximum, AnyRankedTensor:$sum_exp,
                       AnyRankedTensor:$targets, AnyRankedTensor:$count,
                       I64Attr:$classes);
  let inputs = "$logits `,` $maximum `,` $sum_exp `,` $targets `,` $count";
}

#endif // MTPLAN_IR_LOSS_OPS
