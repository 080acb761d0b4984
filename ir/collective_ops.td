//===- collective_ops.td - Communication between ranks --------------------===//
//
// `mtp.reshard` requests a layout change of a value. Collectives define what
// every rank sends and receives to change the layout. Each collective runs over
// one mesh axis: the ranks of a process group differ only in their coordinate
// on that axis.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_COLLECTIVE_OPS
#define MTPLAN_IR_COLLECTIVE_OPS

include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mtp_dialect.td"

def Mtp_ReshardOp : Mtp_Op<"reshard", [Pure, SameOperandsAndResultType]> {
  let summary = "Changes the layout of a value";
  let description = [{
    The operator is logically the identity. `cause` names the operator or
    parameter that produces the value.

    Example:

    ```mlir
    %z = mtp.reshard %y from <[["dp"], [], []], partial = ["tp"]> to <[["dp"], ["tp"], []]>
        cause "h.*.mlp.fc2" : tensor<8x64x32xbf16>
    ```

    Constraints:
    - both layouts have one entry per dimension of the tensor;
    - the layouts differ;
    - if the module has a mesh, the mesh has all axes of both layouts.
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
    This is NCCL's AllReduce. The result may overwrite the operand. With
    `among`, only ranks whose coordinate on the axis is listed in `among` take
    part. For example, the pipeline stages that hold a tied parameter sum its
    gradient.

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
  let summary = "Every rank receives the shards of its group, in rank order";
  let description = [{
    This is NCCL's AllGather along `dim`.

    Constraints:
    - the mesh has the axis;
    - `dim` is a dimension of the tensor;
    - the result has the operand's type, with the size of `dim` multiplied by
      the number of ranks of the axis.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$axis, I64Attr:$dim,
                       StrAttr:$cause);
  let assemblyFormat = [{
    $input `over` $axis `dim` $dim `cause` $cause attr-dict `:`
    functional-type(operands, results)
  }];
}

def Mtp_ReduceScatterOp : Mtp_CollectiveOp<"reduce_scatter"> {
  let summary = "Every rank receives its shard of the sum over its group";
  let description = [{
    This is NCCL's ReduceScatter along `dim`. With `max`, the maximum replaces
    the sum.

    Constraints:
    - the mesh has the axis;
    - `dim` is a dimension of the tensor;
    - the result has the operand's type, with the size of `dim` divided by the
      number of ranks of the axis.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$axis, I64Attr:$dim,
                       UnitAttr:$max, StrAttr:$cause);
  let assemblyFormat = [{
    $input `over` $axis `dim` $dim (`max` $max^)? `cause` $cause attr-dict `:`
    functional-type(operands, results)
  }];
}

def Mtp_AllToAllOp : Mtp_CollectiveOp<"all_to_all"> {
  let summary = "Shards dimension `split` instead of dimension `join`";
  let description = [{
    Every rank cuts the operand along `split`, sends part i to rank i of the
    group, and concatenates the received parts along `join` in rank order.

    Constraints:
    - the mesh has the axis;
    - `split` and `join` are different dimensions of the tensor;
    - the result has the operand's type, with the size of `split` divided, and
      that of `join` multiplied, by the number of ranks of the axis.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$axis, I64Attr:$split,
                       I64Attr:$join, StrAttr:$cause);
  let assemblyFormat = [{
    $input `over` $axis `split` $split `join` $join `cause` $cause attr-dict
    `:` functional-type(operands, results)
  }];
}

def Mtp_SliceOp : Mtp_CollectiveOp<"slice"> {
  let summary = "Every rank keeps its own shard; nothing is sent";
  let description = [{
    Constraints:
    - the mesh has the axis;
    - `dim` is a dimension of the tensor;
    - the result has the operand's type, with the size of `dim` divided by the
      number of ranks of the axis.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$axis, I64Attr:$dim,
                       StrAttr:$cause);
  let assemblyFormat = [{
    $input `over` $axis `dim` $dim `cause` $cause attr-dict `:`
    functional-type(operands, results)
  }];
}

def Mtp_MaskOp : Mtp_CollectiveOp<"mask", [SameOperandsAndResultType]> {
  let summary = "The group's first rank keeps the value, others have zeros";
  let description = [{
    Makes a replicated value partial, so that a sum over the ranks includes the
    value once. For example, the bias of a product with a sharded contraction is
    added once. Nothing is sent.

    Constraints:
    - the mesh has the axis.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$axis, StrAttr:$cause);
  let assemblyFormat = [{
    $input `over` $axis `cause` $cause attr-dict `:` type($result)
  }];
}

//===----------------------------------------------------------------------===//
// Between stages of a pipeline
//
// Each coordinate of mesh axis "pp" is a stage. All ranks of a stage run the
// same program, and different stages run different programs. A value that
// crosses stages is sent by each rank of one stage to the rank of the other
// stage that has the same coordinates on all other axes.
//===----------------------------------------------------------------------===//

def Mtp_SendOp : Mtp_Op<"send", []> {
  let summary = "Sends each rank's shard to its peer in another stage";
  let description = [{
    A rank sends to the rank that has coordinate `to` on axis "pp" and the same
    coordinates on all other axes. `label` names the message. Exactly one
    `mtp.receive` has the same label and receives the message once per
    micro-batch. Messages of one direction, forward or backward, from one stage
    to another are received in the order in which they are sent.

    A send is buffered and does not wait for its receive. Schedules rely on this
    where two stages send to each other before either receives. A backend whose
    send may block until the receive is posted, such as `ncclSend`, must post
    sends on a separate stream, or group a send with the receives that the send
    could delay. The value must stay in memory until the send has completed.

    Example: chunk 0 of the model sends its only value and receives the gradient
    of this value.

    ```mlir
    mtp.segment @send_0 chunk 0 (%x : tensor<2x64x32xbf16>) {
      mtp.send "carried_1.0", %x to 1 : tensor<2x64x32xbf16>
      mtp.backward () {
        %dx = mtp.receive "carried_1.0.grad" from 1 : tensor<2x64x32xbf16>
        mtp.yield %dx : tensor<2x64x32xbf16>
      }
      mtp.yield
    }
    ```

    Constraints:
    - the enclosing segment has a chunk, and the mesh an axis "pp";
    - `to` is a coordinate of that axis other than the segment's stage.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$value, I64Attr:$to);
  let assemblyFormat = "$label `,` $value `to` $to attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Mtp_ReceiveOp : Mtp_Op<"receive", []> {
  let summary = "Receives each rank's shard from its peer in another stage";
  let description = [{
    Waits until the message of the `mtp.send` with the same label has arrived.

    Example:

    ```mlir
    %x = mtp.receive "carried_1.0" from 0 : tensor<2x64x32xbf16>
    ```

    Constraints:
    - the enclosing segment has a chunk, and the mesh an axis "pp";
    - `from` is a coordinate of that axis other than the segment's stage.
  }];
  let arguments = (ins StrAttr:$label, I64Attr:$from);
  let results = (outs AnyRankedTensor:$value);
  let assemblyFormat = "$label `from` $from attr-dict `:` type($value)";
  let hasVerifier = 1;
}

#endif // MTPLAN_IR_COLLECTIVE_OPS
