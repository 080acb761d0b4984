//===- collective_ops.td - Where layouts meet -----------------------------===//
//
// `mtp.reshard` says that a value is wanted in another layout; the collectives
// say what every rank passes and receives to bring that about. All are over one
// mesh axis: the group of a rank is the ranks that differ from it only there.
// Stages of a pipeline (pipeline_ops.td) are such an axis as well, but each of
// them runs a program of its own.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_COLLECTIVE_OPS
#define MTPLAN_IR_COLLECTIVE_OPS

include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mtp_attrs.td"

def Mtp_ReshardOp : Mtp_Op<"reshard", [Pure, SameOperandsAndResultType]> {
  let summary = "Turns one layout of a value into another";
  let description = [{
    Logically the identity. `cause` names the operator or parameter whose value
    it is and the one that wants it otherwise.

    Example:

    ```mlir
    %z = mtp.reshard %y from <[["dp"], [], []], partial = ["tp"]> to <[["dp"], ["tp"], []]>
        cause "h.*.mlp.fc2" : tensor<8x64x32xbf16>
    ```

    Constraints:
    - both layouts have one entry per dimension of the tensor;
    - they differ;
    - the mesh, if the module has one, has their axes.
  }];
  let arguments = (ins AnyRankedTensor:$input, Mtp_LayoutAttr:$source,
                       Mtp_LayoutAttr:$target, StrAttr:$cause);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `from` $source `to` $target `cause` $cause attr-dict `:`
    type($result)
  }];
  let hasVerifier = 1;
}

class Mtp_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : Mtp_Op<mnemonic, traits # [Pure]> {
  let results = (outs AnyRankedTensor:$result);
  let hasVerifier = 1;
}

def Mtp_AllReduceOp
    : Mtp_CollectiveOp<"all_reduce", [SameOperandsAndResultType]> {
  let summary = "Every rank receives the sum, or maximum, over its group";
  let description = [{
    NCCL's AllReduce. In-place is allowed. With `among` only the ranks at these
    coordinates of the axis take part: the stages of a pipeline that hold a tied
    parameter sum its gradient so.

    Example:

    ```mlir
    %s = mtp.all_reduce %g over "pp" among [0, 3] cause "wte.weight" : tensor<64x32xf32>
    ```

    Constraints:
    - the mesh has the axis;
    - `among` has at least two coordinates of the axis, in ascending order.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$axis,
                       OptionalAttr<DenseI64ArrayAttr>:$among, UnitAttr:$max,
                       StrAttr:$cause);
  let assemblyFormat = [{
    $input `over` $axis (`among` $among^)? (`max` $max^)? `cause` $cause
    attr-dict `:` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$input,
                                 "::mlir::StringAttr":$axis, "bool":$max,
                                 "::mlir::StringAttr":$cause), [{
    build($_builder, $_state, type, input, axis, ::mlir::DenseI64ArrayAttr(),
          max ? $_builder.getUnitAttr() : ::mlir::UnitAttr(), cause);
  }]>];
}

def Mtp_AllGatherOp : Mtp_CollectiveOp<"all_gather"> {
  let summary = "Every rank receives the pieces of its group, in rank order";
  let description = [{
    NCCL's AllGather along `dim`.

    Constraints:
    - the mesh has the axis;
    - `dim` is a dimension of the tensor;
    - the result is the operand with `dim` as many times longer as the axis has
      ranks.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$axis, I64Attr:$dim,
                       StrAttr:$cause);
  let assemblyFormat = [{
    $input `over` $axis `dim` $dim `cause` $cause attr-dict `:`
    functional-type(operands, results)
  }];
}

def Mtp_ReduceScatterOp : Mtp_CollectiveOp<"reduce_scatter"> {
  let summary = "Every rank receives its piece of the sum over its group";
  let description = [{
    NCCL's ReduceScatter along `dim`.

    Constraints:
    - the mesh has the axis;
    - `dim` is a dimension of the tensor;
    - the operand is the result with `dim` as many times longer as the axis has
      ranks.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$axis, I64Attr:$dim,
                       UnitAttr:$max, StrAttr:$cause);
  let assemblyFormat = [{
    $input `over` $axis `dim` $dim (`max` $max^)? `cause` $cause attr-dict `:`
    functional-type(operands, results)
  }];
}

def Mtp_AllToAllOp : Mtp_CollectiveOp<"all_to_all"> {
  let summary = "Every rank trades pieces: one dimension whole, another split";
  let description = [{
    Cuts the operand along `split`, sends piece i to rank i of the group and
    joins what arrives, in rank order, along `join`.

    Constraints:
    - the mesh has the axis;
    - `split` and `join` are different dimensions of the tensor;
    - the result is the operand with `split` divided and `join` multiplied by
      the number of ranks of the axis.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$axis, I64Attr:$split,
                       I64Attr:$join, StrAttr:$cause);
  let assemblyFormat = [{
    $input `over` $axis `split` $split `join` $join `cause` $cause attr-dict
    `:` functional-type(operands, results)
  }];
}

def Mtp_SliceOp : Mtp_CollectiveOp<"slice"> {
  let summary = "Every rank keeps its own piece; nothing is sent";
  let description = [{
    Constraints:
    - the mesh has the axis;
    - `dim` is a dimension of the tensor;
    - the operand is the result with `dim` as many times longer as the axis has
      ranks.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$axis, I64Attr:$dim,
                       StrAttr:$cause);
  let assemblyFormat = [{
    $input `over` $axis `dim` $dim `cause` $cause attr-dict `:`
    functional-type(operands, results)
  }];
}

def Mtp_MaskOp : Mtp_CollectiveOp<"mask", [SameOperandsAndResultType]> {
  let summary = "The first rank of the group keeps the value, others have zeros";
  let description = [{
    Makes a whole value partial, so that it is added once to a partial sum: a
    bias under a split contraction. Nothing is sent.

    Constraints:
    - the mesh has the axis.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$axis, StrAttr:$cause);
  let assemblyFormat = [{
    $input `over` $axis `cause` $cause attr-dict `:` type($result)
  }];
}

#endif // MTPLAN_IR_COLLECTIVE_OPS
