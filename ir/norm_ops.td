//===- norm_ops.td - Norms and softmax, which reduce over rows ------------===//
//
// A row of a norm runs along the last dimension or, with `head_dim`, along one
// head of the last dimension. For example, Qwen3 normalises each head of
// queries and keys.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_NORM_OPS
#define MTPLAN_IR_NORM_OPS

include "compute_ops.td"

def Mtp_LayerNormOp : Mtp_ComputeOpBase<"layer_norm"> {
  let costClass = "layerNorm";
  let summary = "Normalises rows to mean 0 and variance 1, scales and shifts";
  let description = [{
    A row runs along the last dimension, which cannot be split. With `head_dim`,
    the last dimension consists of heads of `head_dim` features each. A row is
    one head, all heads share `gamma` and `beta`, and heads can be split.

    Constraints:
    - the last dimension of the input is a multiple of `head_dim`, if there is
      one;
    - `gamma` and `beta` have one dimension, with the length of a row;
    - the result has the input's type.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$gamma, AnyRankedTensor:$beta,
                       DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon,
                       OptionalAttr<I64Attr>:$head_dim);
  let inputs = "$input `,` $gamma `,` $beta";
}

def Mtp_LayerNormGradOp : Mtp_GradientOpBase<"layer_norm_grad"> {
  let costClass = "layerNorm";
  let summary = "Gradients of a layer norm; mean and variance are recomputed";
  let description = [{
    The mean and variance of a row are not saved in forward. The kernel
    recomputes them, because it reads the row anyway.

    Constraints:
    - the last dimension of the input is a multiple of `head_dim`, if there is
      one;
    - `gamma` has one dimension, with the length of a row;
    - the gradient and the gradient of the input have the input's type;
    - the gradients of gamma and beta have the type of gamma.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$gamma, AnyRankedTensor:$gradient,
                       DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon,
                       OptionalAttr<I64Attr>:$head_dim);
  let results = (outs AnyRankedTensor:$input_gradient,
                      AnyRankedTensor:$gamma_gradient,
                      AnyRankedTensor:$beta_gradient);
  let inputs = "$input `,` $gamma `,` $gradient";
}

def Mtp_RmsNormOp : Mtp_ComputeOpBase<"rms_norm"> {
  let costClass = "rmsNorm";
  let summary = "Divides rows by their root mean square and scales";
  let description = [{
    A row runs along the last dimension, which cannot be split (Zhang and
    Sennrich 2019). With `head_dim`, the last dimension consists of heads of
    `head_dim` features each. A row is one head, all heads share `gamma`, and
    heads can be split.

    Constraints:
    - the last dimension of the input is a multiple of `head_dim`, if there is
      one;
    - `gamma` has one dimension, with the length of a row;
    - the result has the input's type.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$gamma,
                       DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon,
                       OptionalAttr<I64Attr>:$head_dim);
  let inputs = "$input `,` $gamma";
}

def Mtp_RmsNormGradOp : Mtp_GradientOpBase<"rms_norm_grad"> {
  let costClass = "rmsNorm";
  let summary = "Gradients of an RMS norm";
  let description = [{
    Constraints:
    - the last dimension of the input is a multiple of `head_dim`, if there is
      one;
    - `gamma` has one dimension, with the length of a row;
    - the gradient and the gradient of the input have the input's type;
    - the gradient of gamma has the type of gamma.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$gamma, AnyRankedTensor:$gradient,
                       DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon,
                       OptionalAttr<I64Attr>:$head_dim);
  let results = (outs AnyRankedTensor:$input_gradient,
                      AnyRankedTensor:$gamma_gradient);
  let inputs = "$input `,` $gamma `,` $gradient";
}

def Mtp_SoftmaxOp : Mtp_ComputeOpBase<"softmax", [SameOperandsAndResultType]> {
  let summary = "Exponentiates rows and normalises each to sum 1";
  let description = [{
    A row runs along the last dimension, which cannot be split.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input);
  let types = "type($result)";
  let hasVerifier = 0;
}

def Mtp_SoftmaxGradOp
    : Mtp_GradientOpBase<"softmax_grad", [SameOperandsAndResultType]> {
  let summary = "Gradient of a softmax, from its output";
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$output,
                       AnyRankedTensor:$gradient);
  let inputs = "$output `,` $gradient";
  let types = "type($result)";
  let hasVerifier = 0;
}

#endif // MTPLAN_IR_NORM_OPS
