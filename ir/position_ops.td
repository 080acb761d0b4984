//===- position_ops.td - The first position, and zeros --------------------===//
//
// A vision transformer puts a learned vector (the class token) before the
// patches of an image and reads the output at this position (Dosovitskiy et al.
// 2021). The first position of the input data is unused and is replaced by the
// vector, so that all tensors have the same length.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_POSITION_OPS
#define MTPLAN_IR_POSITION_OPS

include "compute_ops.td"

def Mtp_PutFirstOp : Mtp_ComputeOpBase<"put_first"> {
  let summary = "Replaces the first position by a vector";
  let description = [{
    `result[b, 0, :] = vector`, and all other positions are copied from the
    input. The operator is linear in both operands together.

    Constraints:
    - the input has three dimensions, and the result has the input's type;
    - the vector has one dimension, with the size of the last dimension of the
      input.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$vector);
  let inputs = "$input `,` $vector";
}

def Mtp_PutFirstGradOp : Mtp_GradientOpBase<"put_first_grad"> {
  let summary = "Gradients of mtp.put_first";
  let description = [{
    The gradient of the input is zero at the first position. The gradient of the
    vector is the sum over the samples of the gradient at the first position.

    Constraints:
    - the gradient has three dimensions, and the input's gradient has the same
      type;
    - the vector's gradient has one dimension, with the size of the last
      dimension of the gradient.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$gradient);
  let results = (outs AnyRankedTensor:$input_gradient,
                      AnyRankedTensor:$vector_gradient);
  let inputs = "$gradient";
}

def Mtp_TakeFirstOp : Mtp_ComputeOpBase<"take_first"> {
  let summary = "Keeps the first position of every sample";
  let description = [{
    `result[b, :] = input[b, 0, :]`. Splitting positions makes the result
    partial: the rank that has the first position returns it, and all other
    ranks return zeros.

    Constraints:
    - the input has three dimensions, and the result has the first and the last
      of these dimensions.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input);
}

def Mtp_TakeFirstGradOp : Mtp_GradientOpBase<"take_first_grad"> {
  let summary = "Puts a gradient at the first position, zero elsewhere";
  let description = [{
    Constraints:
    - the result has three dimensions, and the gradient has the first and the
      last of these dimensions.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$gradient);
  let inputs = "$gradient";
}

def Mtp_ZerosOp : Mtp_ComputeOpBase<"zeros"> {
  let summary = "Creates zeros, the gradient of a value that is never read";
  let description = [{
    Every rank creates the shard that it needs.
  }];
  let arguments = (ins StrAttr:$label);
  let assemblyFormat = "$label attr-dict `:` type($result)";
  let hasVerifier = 0;
}

#endif // MTPLAN_IR_POSITION_OPS
