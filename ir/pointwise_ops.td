//===- pointwise_ops.td - Element by element ------------------------------===//

#ifndef MTPLAN_IR_POINTWISE_OPS
#define MTPLAN_IR_POINTWISE_OPS

include "mlir/IR/EnumAttr.td"
include "compute_ops.td"

class Mtp_UnaryOp<string mnemonic>
    : Mtp_ComputeOpBase<mnemonic, [SameOperandsAndResultType]> {
  let results = (outs AnyRankedTensor:$result);
  let hasVerifier = 0;
}

class Mtp_BinaryOp<string mnemonic>
    : Mtp_ComputeOpBase<mnemonic, [SameOperandsAndResultType]> {
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$lhs,
                       AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $label `(` $lhs `,` $rhs `)` attr-dict `:` type($result)
  }];
  let hasVerifier = 0;
}

def Mtp_AddOp : Mtp_BinaryOp<"add"> {
  let summary = "Adds two tensors of one shape";
  let description = [{
    The residual connection, and the sum of gradients of a value used twice.
    Linear in both operands together: two partial values give a partial sum.
  }];
}

def Mtp_MulOp : Mtp_BinaryOp<"mul"> {
  let summary = "Multiplies two tensors of one shape, element by element";
}

def Mtp_ScaleOp : Mtp_UnaryOp<"scale"> {
  let summary = "Multiplies a tensor by a constant";
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input, F64Attr:$factor);
  let assemblyFormat = [{
    $label `(` $input `)` `by` $factor attr-dict `:` type($result)
  }];
}

def Mtp_DropoutOp : Mtp_UnaryOp<"dropout"> {
  let summary = "Zeroes elements at random and scales the rest";
  let description = [{
    Keeps an element with probability 1 - `rate` and divides it by that. Whether
    an element is kept is a function of the seed, the step, the copy, `mask` and
    the element's index in the *global* tensor, so the backward operator, or any
    rank, draws the same mask by the same name.

    Constraints:
    - `rate` is at least 0 and below 1.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input, F64Attr:$rate,
                       StrAttr:$mask);
  let assemblyFormat = [{
    $label `(` $input `)` attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Mtp_Activation : I32EnumAttr<"Activation", "a pointwise nonlinearity", [
    I32EnumAttrCase<"Gelu", 0, "gelu">,
    I32EnumAttrCase<"GeluTanh", 1, "gelu_tanh">,
    I32EnumAttrCase<"Silu", 2, "silu">,
    I32EnumAttrCase<"Relu", 3, "relu">,
    I32EnumAttrCase<"Tanh", 4, "tanh">,
    I32EnumAttrCase<"Sigmoid", 5, "sigmoid">]> {
  let cppNamespace = "::mtplan::ir";
}

def Mtp_ActivationOp : Mtp_UnaryOp<"activation"> {
  let summary = "Applies a nonlinearity element by element";
  let description = [{
    `gelu` is the exact form with erf, `gelu_tanh` the approximation of GPT-2.

    Example:

    ```mlir
    %g = mtp.activation "h.*.mlp.act" gelu_tanh (%u) : tensor<8x64x128xbf16>
    ```
  }];
  let arguments = (ins StrAttr:$label, Mtp_Activation:$kind,
                       AnyRankedTensor:$input);
  let assemblyFormat = [{
    $label $kind `(` $input `)` attr-dict `:` type($result)
  }];
}

def Mtp_ActivationGradOp : Mtp_UnaryOp<"activation_grad"> {
  let summary = "Gradient of a nonlinearity, from its input";
  let description = [{
    Linear in `gradient`: with `input` whole, a partial gradient stays partial.
  }];
  let arguments = (ins StrAttr:$label, Mtp_Activation:$kind,
                       AnyRankedTensor:$input, AnyRankedTensor:$gradient);
  let assemblyFormat = [{
    $label $kind `(` $input `,` $gradient `)` attr-dict `:` type($result)
  }];
}

def Mtp_SwigluOp : Mtp_BinaryOp<"swiglu"> {
  let summary = "silu(gate) times up";
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$gate,
                       AnyRankedTensor:$up);
  let assemblyFormat = [{
    $label `(` $gate `,` $up `)` attr-dict `:` type($result)
  }];
}

def Mtp_SwigluGradOp
    : Mtp_ComputeOpBase<"swiglu_grad", [SameOperandsAndResultType]> {
  let summary = "Gradients of silu(gate) times up";
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$gate,
                       AnyRankedTensor:$up, AnyRankedTensor:$gradient);
  let results = (outs AnyRankedTensor:$gate_gradient,
                      AnyRankedTensor:$up_gradient);
  let assemblyFormat = [{
    $label `(` $gate `,` $up `,` $gradient `)` attr-dict `:`
    type($gate_gradient)
  }];
  let hasVerifier = 0;
}

#endif // MTPLAN_IR_POINTWISE_OPS
