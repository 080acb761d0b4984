//===- position_ops.td - The first position, and nothing ------------------===//
//
// A classifier puts a learned vector before the pieces of an image and reads
// its answer there (Dosovitskiy et al. 2021). The data has a place for it, so
// that lengths stay what they are: the vector takes the first position, and no
// tensor is longer by one than another.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_POSITION_OPS
#define MTPLAN_IR_POSITION_OPS

include "compute_ops.td"

def Mtp_PutFirstOp : Mtp_ComputeOpBase<"put_first"> {
  let summary = "Replaces the first position by a vector";
  let description = [{
    `result[b, 0, :] = vector`, and all other positions are the input's. Linear
    in both operands together.

    Constraints:
    - the input has three dimensions and the result its type;
    - the vector has one, of the size of the input's last.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$vector);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $label `(` $input `,` $vector `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

def Mtp_PutFirstGradOp : Mtp_ComputeOpBase<"put_first_grad"> {
  let summary = "Takes a gradient apart: the first position, and the others";
  let description = [{
    The gradient of the input is zero at the first position; that of the vector
    is the sum over the samples of what stands there.

    Constraints:
    - the gradient has three dimensions; the results have its type and that of
      a vector of its last dimension.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$gradient);
  let results = (outs AnyRankedTensor:$input_gradient,
                      AnyRankedTensor:$vector_gradient);
  let assemblyFormat = [{
    $label `(` $gradient `)` attr-dict `:` functional-type(operands, results)
  }];
}

def Mtp_TakeFirstOp : Mtp_ComputeOpBase<"take_first"> {
  let summary = "Keeps the first position of every sample";
  let description = [{
    `result[b, :] = input[b, 0, :]`. Positions split leave a sum, for one rank
    has the first.

    Constraints:
    - the input has three dimensions, the result the first and last of them.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $label `(` $input `)` attr-dict `:` functional-type(operands, results)
  }];
}

def Mtp_TakeFirstGradOp : Mtp_ComputeOpBase<"take_first_grad"> {
  let summary = "Puts a gradient at the first position, zero elsewhere";
  let description = [{
    Constraints:
    - the result has three dimensions, the gradient the first and last of them.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$gradient);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $label `(` $gradient `)` attr-dict `:` functional-type(operands, results)
  }];
}

def Mtp_ZerosOp : Mtp_ComputeOpBase<"zeros"> {
  let summary = "Zeros: the gradient of what is handed on but not read";
  let description = [{
    Every rank makes the piece it needs.
  }];
  let arguments = (ins StrAttr:$label);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$label attr-dict `:` type($result)";
  let hasVerifier = 0;
}

#endif // MTPLAN_IR_POSITION_OPS
