//===- norm_ops.td - Norms and softmax, which reduce over rows ------------===//

#ifndef MTPLAN_IR_NORM_OPS
#define MTPLAN_IR_NORM_OPS

include "compute_ops.td"

def Mtp_LayerNormOp : Mtp_ComputeOpBase<"layer_norm"> {
  let costClass = "layerNorm";
  let summary = "Normalises rows to mean 0 and variance 1, scales and shifts";
  let description = [{
    Over the last dimension, which cannot be split.

    Constraints:
    - `gamma` and `beta` have one dimension, of the size of the input's last;
    - the result has the input's type.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$gamma, AnyRankedTensor:$beta,
                       DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon);
  let inputs = "$input `,` $gamma `,` $beta";
}

def Mtp_LayerNormGradOp : Mtp_GradientOpBase<"layer_norm_grad"> {
  let costClass = "layerNorm";
  let summary = "Gradients of a layer norm; mean and variance are recomputed";
  let description = [{
    The statistics of a row are recomputed from the row, which is in registers
    anyway, so none are saved.

    Constraints:
    - `gamma` has one dimension, of the size of the input's last;
    - the gradient has the input's type; results are those of input and gamma,
      twice.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$gamma, AnyRankedTensor:$gradient,
                       DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon);
  let results = (outs AnyRankedTensor:$input_gradient,
                      AnyRankedTensor:$gamma_gradient,
                      AnyRankedTensor:$beta_gradient);
  let inputs = "$input `,` $gamma `,` $gradient";
}

def Mtp_RmsNormOp : Mtp_ComputeOpBase<"rms_norm"> {
  let costClass = "rmsNorm";
  let summary = "Divides rows by their root mean square and scales";
  let description = [{
    The norm is over the last dimension, which cannot be split (Zhang and
    Sennrich 2019).

    Constraints:
    - `gamma` has one dimension, of the size of the input's last;
    - the result has the input's type.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$gamma,
                       DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon);
  let inputs = "$input `,` $gamma";
}

def Mtp_RmsNormGradOp : Mtp_GradientOpBase<"rms_norm_grad"> {
  let costClass = "rmsNorm";
  let summary = "Gradients of an RMS norm";
  let description = [{
    Constraints:
    - `gamma` has one dimension, of the size of the input's last;
    - the gradient has the input's type; results are those of input and gamma.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$gamma, AnyRankedTensor:$gradient,
                       DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon);
  let results = (outs AnyRankedTensor:$input_gradient,
                      AnyRankedTensor:$gamma_gradient);
  let inputs = "$input `,` $gamma `,` $gradient";
}

def Mtp_SoftmaxOp : Mtp_ComputeOpBase<"softmax", [SameOperandsAndResultType]> {
  let summary = "Exponentiates and normalises rows to sum 1";
  let description = [{
    Over the last dimension, which cannot be split.
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
