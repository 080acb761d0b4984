//===- position_ops.td - The first position, and zeros --------------------===//
//
// A vision transformer puts a learned vector before the patches of an image and
// reads the output at this position (Dosovitskiy et al. 2021). The first
// position of the data is reserved for the vector, so that all tensors have the
// same length.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_POSITION_OPS
#define MTPLAN_IR_POSITION_OPS

include "compute_ops.td"

def Mtp_PutFirstOp : Mtp_ComputeOpBase<"put_first"> {
  let summary = "Replaces the first position by a vector";
  let description = [{
    `result[b, 0, :] = vector`, and all other positions are the input's. The
    operator is linear in both operands together.

    Constraints:
    - the input has three dimensions and the result its type;
    - the vector has one, of the size of the input's last.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$vector);
  let inputs = "$input `,` $vector";
}

def Mtp_PutFirstGradOp : Mtp_GradientOpBase<"put_first_grad"> {
  let summary = "Splits a gradient into the first position and the others";
  let description = [{
    The gradient of the input is zero at the first position. The gradient of the
    vector is the sum over the samples of the gradient at the first position.

    Constraints:
    - the gradient has three dimensions; the results have its type and that of
      a vector of its last dimension.
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
    partial, because one rank has the first position.

    Constraints:
    - the input has three dimensions, the result the first and last of them.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input);
}

def Mtp_TakeFirstGradOp : Mtp_GradientOpBase<"take_first_grad"> {
  let summary = "Puts a gradient at the first position, zero elsewhere";
  let description = [{
    Constraints:
    - the result has three dimensions, the gradient the first and last of them.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$gradient);
  let inputs = "$gradient";
}

def Mtp_ZerosOp : Mtp_ComputeOpBase<"zeros"> {
  let summary = "Makes zeros, the gradient of a value that is never read";
  let description = [{
    Every rank makes the piece it needs.
  }];
  let arguments = (ins StrAttr:$label);
  let assemblyFormat = "$label attr-dict `:` type($result)";
  let hasVerifier = 0;
}

#endif // MTPLAN_IR_POSITION_OPS
