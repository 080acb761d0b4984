//===- pointwise_ops.td - Elementwise operators ---------------------------===//
//
// Each definition states the shapes, factor rule, floating-point operations,
// cost class and gradient of its operator.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_POINTWISE_OPS
#define MTPLAN_IR_POINTWISE_OPS

include "mlir/IR/EnumAttr.td"
include "compute_ops.td"

// This is the base of elementwise operators. All operands and results have one
// shape, and every dimension may be sharded. `flops` counts operations per
// element: 1 for an addition or multiplication and 8 for a transcendental
// function, which is about the degree of the function's polynomial
// approximation in single precision. `linear` lists groups of operands in which
// the operator is jointly linear (FactorRule::linearGroups).
class Mtp_PointwiseOp<string mnemonic, int flops, string linear>
    : Mtp_ComputeOpBase<mnemonic, [SameOperandsAndResultType]> {
  let hasVerifier = 0;
  let types = "type($result)";
  // Holds the body of buildGradient. Operators of a backward half keep this
  // default.
  code gradient = [{
      return rejectGradient(*this, gradients, kSecondOrder);
  }];
  let extraClassDefinition = !strconcat([{
    ::mtplan::ir::FactorRule $cppClass::getFactorRule() {
      return pointwiseRule(*this, }], linear, [{);
    }
    double $cppClass::getFlops() {
      return }], !cast<string>(flops), [{ *
             elementsOf(getOperation()->getResult(0));
    }
    ::llvm::LogicalResult
    $cppClass::buildGradient(::mtplan::ir::GradientBuilder &gradients) {
    }], gradient, [{
    }
  }]);
}

class Mtp_UnaryOp<string mnemonic, int flops, string linear>
    : Mtp_PointwiseOp<mnemonic, flops, linear>;

class Mtp_BinaryOp<string mnemonic, int flops, string linear>
    : Mtp_PointwiseOp<mnemonic, flops, linear> {
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$lhs,
                       AnyRankedTensor:$rhs);
  let inputs = "$lhs `,` $rhs";
}

def Mtp_AddOp : Mtp_BinaryOp<"add", 1, "{{0, 1}}"> {
  let summary = "Adds two tensors of the same shape";
  let description = [{
    Residual connections use this operator. Gradients of a value that is used
    several times are also summed by this operator. The operator is linear in
    both operands together: the sum of two partial values is partial.
  }];
  let costClass = "residual";
  let gradient = [{
      if (::mlir::Value above = gradients.gradientOf(getResult())) {
        gradients.add(getLhs(), above, getLabel());
        gradients.add(getRhs(), above, getLabel());
      }
      return ::llvm::success();
  }];
}

def Mtp_MulOp : Mtp_BinaryOp<"mul", 1, "{{0}, {1}}"> {
  let summary = "Multiplies two tensors of the same shape, element by element";
  let gradient = [{
      ::mlir::Value above = gradients.gradientOf(getResult());
      if (!above)
        return ::llvm::success();
      auto product = [&](::mlir::Value operand, ::mlir::Value other,
                         ::llvm::StringRef suffix) {
        if (GradientBuilder::wants(operand))
          gradients.add(operand,
                        gradients.builder.create<MulOp>(
                            getLoc(), (getLabel() + suffix).str(), above,
                            other).getResult(),
                        getLabel());
      };
      product(getLhs(), getRhs(), ".dlhs");
      product(getRhs(), getLhs(), ".drhs");
      return ::llvm::success();
  }];
}

def Mtp_ScaleOp : Mtp_UnaryOp<"scale", 1, "{{0}}"> {
  let summary = "Multiplies a tensor by a constant";
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input, F64Attr:$factor);
  let assemblyFormat = [{
    $label `(` $input `)` `by` $factor attr-dict `:` type($result)
  }];
  let gradient = [{
      return addGradientOf(getInput(), *this, gradients, ".dx",
          [&](::llvm::StringRef label, ::mlir::Value above) {
            return gradients.builder.create<ScaleOp>(getLoc(), label, above,
                                                     getFactor());
          });
  }];
}

def Mtp_DropoutOp : Mtp_UnaryOp<"dropout", 2, "{{0}}"> {
  let summary = "Zeroes elements at random and scales the rest";
  let description = [{
    Keeps an element with probability 1 - `rate` and divides it by this
    probability. The decision to keep an element is a function of the seed, the
    step, the layer, the name `mask` and the element's index in the *global*
    tensor. Therefore the backward operator and all ranks draw the same mask.

    Constraints:
    - `rate` is at least 0 and below 1.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input, F64Attr:$rate,
                       StrAttr:$mask);
  let hasVerifier = 1;
  let costClass = "dropout";
  // The gradient uses the same mask name and therefore drops the same elements.
  let gradient = [{
      return addGradientOf(getInput(), *this, gradients, ".dx",
          [&](::llvm::StringRef label, ::mlir::Value above) {
            return gradients.builder.create<DropoutOp>(getLoc(), label, above,
                                                       getRate(), getMask());
          });
  }];
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

def Mtp_ActivationOp : Mtp_UnaryOp<"activation", 8, "{}"> {
  let summary = "Applies a nonlinearity element by element";
  let description = [{
    `gelu` is the exact form with erf, and `gelu_tanh` is the approximation that
    GPT-2 uses.

    Example:

    ```mlir
    %g = mtp.activation "h.*.mlp.act" gelu_tanh (%u) : tensor<8x64x128xbf16>
    ```
  }];
  let arguments = (ins StrAttr:$label, Mtp_Activation:$kind,
                       AnyRankedTensor:$input);
  let head = "$label $kind";
  let costClass = "activation";
  let gradient = [{
      return addGradientOf(getInput(), *this, gradients, ".grad",
          [&](::llvm::StringRef label, ::mlir::Value above) {
            return gradients.builder.create<ActivationGradOp>(
                getLoc(), label, getKind(), getInput(), above);
          });
  }];
}

def Mtp_ActivationGradOp : Mtp_UnaryOp<"activation_grad", 12, "{{1}}"> {
  let summary = "Gradient of a nonlinearity, from its input";
  let description = [{
    The operator is linear in `gradient`: if `gradient` is partial and `input`
    replicated, the result is partial.
  }];
  let arguments = (ins StrAttr:$label, Mtp_Activation:$kind,
                       AnyRankedTensor:$input, AnyRankedTensor:$gradient);
  let head = "$label $kind";
  let inputs = "$input `,` $gradient";
  let costClass = "activation";
}

def Mtp_SwigluOp : Mtp_BinaryOp<"swiglu", 10, "{{1}}"> {
  let summary = "silu(gate) times up";
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$gate,
                       AnyRankedTensor:$up);
  let inputs = "$gate `,` $up";
  let costClass = "gated";
  let gradient = [{
      ::mlir::Value above = gradients.gradientOf(getResult());
      if (!above)
        return ::llvm::success();
      ::mlir::Type type = getResult().getType();
      auto terms = gradients.builder.create<SwigluGradOp>(
          getLoc(), type, type, (getLabel() + ".grad").str(), getGate(),
          getUp(), above);
      gradients.add(getGate(), terms.getGateGradient(), getLabel());
      gradients.add(getUp(), terms.getUpGradient(), getLabel());
      return ::llvm::success();
  }];
}

def Mtp_SwigluGradOp : Mtp_PointwiseOp<"swiglu_grad", 16, "{{2}}"> {
  let summary = "Gradients of silu(gate) times up";
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$gate,
                       AnyRankedTensor:$up, AnyRankedTensor:$gradient);
  let results = (outs AnyRankedTensor:$gate_gradient,
                      AnyRankedTensor:$up_gradient);
  let inputs = "$gate `,` $up `,` $gradient";
  let types = "type($gate_gradient)";
  let costClass = "gated";
}

def Mtp_LogitSoftcapOp : Mtp_UnaryOp<"logit_softcap", 10, "{}"> {
  let summary = "Bounds numbers smoothly: cap times tanh(input / cap)";
  let description = [{
    Results are between -`cap` and `cap`, and numbers much smaller than `cap`
    hardly change (Gemma Team 2024, section 2). `mtp.attention` has its own
    option, `softcap`, for scores.

    Constraints:
    - `cap` is above 0.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       Mtp_PositiveF64:$cap);
  let costClass = "activation";
  let gradient = [{
      return addGradientOf(getInput(), *this, gradients, ".grad",
          [&](::llvm::StringRef label, ::mlir::Value above) {
            return gradients.builder.create<LogitSoftcapGradOp>(
                getLoc(), label, getResult(), above, getCap());
          });
  }];
}

def Mtp_LogitSoftcapGradOp : Mtp_UnaryOp<"logit_softcap_grad", 4, "{{1}}"> {
  let summary = "Gradient of a soft cap, from its result";
  let description = [{
    The derivative is 1 - (output / cap)^2, so the input need not be saved.

    Constraints:
    - `cap` is above 0.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$output,
                       AnyRankedTensor:$gradient, Mtp_PositiveF64:$cap);
  let inputs = "$output `,` $gradient";
  let costClass = "activation";
}

#endif // MTPLAN_IR_POINTWISE_OPS
