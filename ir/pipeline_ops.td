//===- pipeline_ops.td - What stages of a pipeline hand each other --------===//
//
// Stages are the ranks of mesh axis "pp". The ranks of one stage run one
// program in lock step, other stages run others; what crosses from one to
// another is sent by the one and received by the other, rank by rank.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_PIPELINE_OPS
#define MTPLAN_IR_PIPELINE_OPS

include "mtp_attrs.td"

def Mtp_SendOp : Mtp_Op<"send", []> {
  let summary = "Hands every rank's piece to the same place in another stage";
  let description = [{
    A rank sends to the rank that differs from it only along "pp", where it has
    coordinate `to`. `label` names the message: the one `mtp.receive` of that
    label takes it, once per micro-batch. Messages of one direction, forward or
    backward, from one stage to another are received in the order in which they
    are sent.

    A send is buffered: it does not wait for its receive. Schedules rely on it,
    as where two stages send each other something before either receives. A
    backend whose send may block until the other end is there, such as
    `ncclSend`, has to post it on a stream of its own, or grouped with the
    receives that it could keep waiting; and the value sent has to last until it
    is gone.

    Example: part 0 of the model hands its only value on, and gets its gradient.

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
    - the segment around it has a chunk, and the mesh an axis "pp";
    - `to` is a coordinate of that axis, and not the segment's own.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$value, I64Attr:$to);
  let assemblyFormat = "$label `,` $value `to` $to attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Mtp_ReceiveOp : Mtp_Op<"receive", []> {
  let summary = "Takes every rank's piece from the same place in another stage";
  let description = [{
    The other end of `mtp.send`; waits until the message is there.

    Example:

    ```mlir
    %x = mtp.receive "carried_1.0" from 0 : tensor<2x64x32xbf16>
    ```

    Constraints:
    - the segment around it has a chunk, and the mesh an axis "pp";
    - `from` is a coordinate of that axis, and not the segment's own.
  }];
  let arguments = (ins StrAttr:$label, I64Attr:$from);
  let results = (outs AnyRankedTensor:$value);
  let assemblyFormat = "$label `from` $from attr-dict `:` type($value)";
  let hasVerifier = 1;
}

#endif // MTPLAN_IR_PIPELINE_OPS
