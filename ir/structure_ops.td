//===- structure_ops.td - Segments, parameters, data, gradients -----------===//

#ifndef MTPLAN_IR_STRUCTURE_OPS
#define MTPLAN_IR_STRUCTURE_OPS

include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mtp_dialect.td"

def Mtp_SegmentOp : Mtp_Op<"segment", [Symbol, SingleBlock]> {
  let summary = "Contains a part of the model, run `repeat` times in sequence";
  let description = [{
    A segment is the unit of repetition, of recomputation and of pipeline cuts.
    The block's arguments are the values that the previous segment yields, and
    `mtp.yield` passes values on to the next segment. A segment has `repeat`
    equal layers, numbered from `first`; a `*` in a name inside the segment
    stands for the number of the layer. The backward half, once built, is the
    last operation before the `mtp.yield`. `chunk` is the number of the chunk
    (virtual stage) of the pipeline to which the segment belongs. Chunk k is on
    the ranks whose coordinate on axis "pp" is k modulo the number of stages.

    Example:

    ```mlir
    mtp.segment @h repeat 24 (%x : tensor<8x1024x1536xbf16>) {
      %y = mtp.dropout "h.*.drop" (%x) {rate = 0.1 : f64, mask = "h.*.drop"} : tensor<8x1024x1536xbf16>
      mtp.yield %y : tensor<8x1024x1536xbf16>
    }
    ```

    Constraints:
    - `repeat` is at least 1, `first` and `chunk` at least 0;
    - a segment that repeats yields the types of its arguments;
    - the arguments have the types that the previous segment yields;
    - there is at most one `mtp.backward`, right before the `mtp.yield`;
    - operator labels are unique within the segment. (If a repeated segment is
      split, its parts have equal labels.)
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       DefaultValuedAttr<I64Attr, "1">:$repeat,
                       DefaultValuedAttr<I64Attr, "0">:$first,
                       OptionalAttr<I64Attr>:$chunk,
                       OptionalAttr<TypedArrayAttrBase<Mtp_LayoutAttr,
                         "layouts of the arguments">>:$layouts);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    /// Returns the backward half, or null.
    ::mtplan::ir::BackwardOp getBackward();
    ::mtplan::ir::YieldOp getYield();
    /// Returns the segment's pipeline stage, a coordinate on axis "pp", or
    /// nothing if the segment has no chunk or the mesh no such axis.
    std::optional<std::int64_t> getStage();
  }];
}

def Mtp_BackwardOp : Mtp_Op<"backward",
    [SingleBlock, HasParent<"SegmentOp">]> {
  let summary = "Holds the backward half of a segment";
  let description = [{
    The block's arguments are the gradients of the values that the segment
    yields, and its `mtp.yield` passes on the gradients of the segment's
    arguments. Values of the forward half that the backward half uses are the
    segment's saved activations.

    Constraints:
    - the arguments have the types that the segment yields;
    - the `mtp.yield` has the types of the segment's arguments.

    In a partitioned module, the layout of a gradient may differ from that of
    its value. In such a module, the types must instead match those of the
    neighbouring backward halves.
  }];
  let arguments = (ins OptionalAttr<TypedArrayAttrBase<Mtp_LayoutAttr,
                         "layouts of the arguments">>:$layouts);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    ::mtplan::ir::YieldOp getYield();
  }];
}

def Mtp_YieldOp : Mtp_Op<"yield",
    [Terminator, ParentOneOf<["SegmentOp", "BackwardOp"]>]> {
  let summary = "Passes values on to the neighbouring segment";
  let arguments = (ins Variadic<AnyRankedTensor>:$values,
                       OptionalAttr<TypedArrayAttrBase<Mtp_LayoutAttr,
                         "layouts of the values">>:$layouts);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{}]>];
}

def Mtp_UpdateOp : Mtp_Op<"update", [SingleBlock, NoTerminator]> {
  let summary = "Contains the operations that run once per step, after all "
                "micro-batches";
  let description = [{
    Reads accumulated gradients and updates parameters. A chain of operations
    ends in an in-place `mtp.adamw`, an `mtp.store` or an `mtp.result`; the
    block has no terminator. After a step is split over the stages of a
    pipeline, each stage has its own update, with the stage's number after `on`.

    Constraints:
    - a module has at most one update, or one per stage;
    - the stage, if there is one, is a coordinate of the mesh's axis "pp".
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$stage);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`on` $stage^)? attr-dict-with-keyword $body";
  let builders = [OpBuilder<(ins), [{ (void)$_state.addRegion(); }]>];
  let hasVerifier = 1;
}

def Mtp_ParameterOp : Mtp_Op<"parameter", [Pure]> {
  let summary = "Reads a parameter";
  let description = [{
    `label` is the parameter's global name, in which a `*` stands for the number
    of the layer. If two segments have the same label, they use the same
    parameter (tied embeddings). In a planned module, `layout` is the layout of
    the stored parameter. `unpadded` lists the sizes of the dimensions without
    padding. Padding, such as embedding rows that belong to no token, makes a
    dimension divisible. The sizes in `unpadded` are global even if the type is
    that of a shard. Without `unpadded`, there is no padding.

    Example: the table has 47 more rows than there are tokens.

    ```mlir
    %table = mtp.parameter "wte.weight" {unpadded = array<i64: 50257, 768>} : tensor<50304x768xbf16>
    ```

    Constraints:
    - `init` is one of normal, residual, ones, zeros (`residual` is normal with
      the standard deviation divided by the square root of twice the number of
      layers);
    - `unpadded` has an entry for each dimension, at least 1 and at most the
      global size of the dimension;
    - `unpadded` is the same wherever the label appears;
    - the type is the same wherever the label appears, except for a label with a
      `*` in a partitioned module, because the layers of different segments may
      have different layouts.
  }];
  let arguments = (ins StrAttr:$label,
                       DefaultValuedStrAttr<StrAttr, "normal">:$init,
                       OptionalAttr<Mtp_LayoutAttr>:$layout,
                       OptionalAttr<DenseI64ArrayAttr>:$unpadded);
  let results = (outs AnyRankedTensor:$value);
  let assemblyFormat = "$label attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Mtp_InputOp : Mtp_Op<"input", [Pure]> {
  let summary = "Reads one micro-batch of training data";
  let description = [{
    Integers are below `limit`. `dims` states for each dimension whether it
    counts samples (`batch`), positions (`sequence`) or something else
    (`other`). The kinds of the dimensions of all other tensors are derived from
    `dims`. The input called `count` is the number of target tokens of the whole
    step, which is the same on every rank.

    Example:

    ```mlir
    %ids = mtp.input "ids" dims ["batch", "sequence"] below 50257 : tensor<8x1024xi32>
    ```

    Constraints:
    - `dims` has one entry per dimension: batch, sequence or other.
  }];
  let arguments = (ins StrAttr:$label, StrArrayAttr:$dims,
                       OptionalAttr<I64Attr>:$limit,
                       OptionalAttr<Mtp_LayoutAttr>:$layout);
  let results = (outs AnyRankedTensor:$value);
  let assemblyFormat = [{
    $label `dims` $dims (`below` $limit^)? attr-dict `:` type($value)
  }];
  let hasVerifier = 1;
}

def Mtp_AccumulateOp : Mtp_Op<"accumulate", []> {
  let summary = "Adds one micro-batch's term to an accumulator";
  let description = [{
    `label` is the parameter whose gradient is accumulated, or a reported scalar
    such as `loss`. In a planned module, `layout` is the layout of the
    accumulator. Over axes over which the layout is partial, `mtp.update`
    reduces the accumulator once per step, instead of a reduction of each term.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$value,
                       OptionalAttr<Mtp_LayoutAttr>:$layout);
  let assemblyFormat = "$label `,` $value attr-dict `:` type($value)";
}

def Mtp_AccumulatedOp : Mtp_Op<"accumulated", [HasParent<"UpdateOp">]> {
  let summary = "Reads an accumulator after the last micro-batch";
  let description = [{
    `copies` restricts the operation to some of the layers that the `*` of the
    label stands for. Its two numbers are the first layer and the number of
    layers. Without `copies`, the `*` stands for all layers.
  }];
  let arguments = (ins StrAttr:$label, OptionalAttr<Mtp_LayoutAttr>:$layout,
                       OptionalAttr<DenseI64ArrayAttr>:$copies);
  let results = (outs AnyRankedTensor:$value);
  let assemblyFormat = "$label attr-dict `:` type($value)";
}

def Mtp_AdamwOp : Mtp_Op<"adamw", [HasParent<"UpdateOp">]> {
  let summary = "Updates a parameter with its gradient";
  let description = [{
    This is AdamW with decoupled weight decay (Loshchilov and Hutter 2019).
    Weight decay applies if `decay` is set, which `mtp-differentiate` does for
    all parameters except vectors. Without `layout`, the state (master weights
    and two moments) has the layout of the parameter, and the parameter is
    updated in place. With `layout`, the state has this layout, which shards the
    state further than the parameter (ZeRO 1 and 2). The result is the updated
    shard, from which the parameter is gathered for `mtp.store`. `copies` has
    the same meaning as in `mtp.accumulated`.

    Example: every rank of dp updates half of a weight and then gathers both
    halves.

    ```mlir
    %w = mtp.adamw "w", %g {layout = #mtp.layout<[["dp"], []]>} : tensor<4x4xf32> -> tensor<4x4xf32>
    %v = mtp.reshard %w from <[["dp"], []]> to <[[], []]> cause "w" : tensor<4x4xf32>
    mtp.store "w", %v : tensor<4x4xf32>
    ```

    Constraints:
    - the result, if there is one, has the gradient's type;
    - with a `layout` there is a result.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$gradient,
                       UnitAttr:$decay, OptionalAttr<Mtp_LayoutAttr>:$layout,
                       OptionalAttr<DenseI64ArrayAttr>:$copies);
  let results = (outs Optional<AnyRankedTensor>:$updated);
  let assemblyFormat = [{
    $label `,` $gradient attr-dict `:` type($gradient)
    (`->` type($updated)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::StringAttr":$label,
                                 "::mlir::Value":$gradient,
                                 "::mlir::UnitAttr":$decay), [{
    build($_builder, $_state, ::mlir::Type(), label, gradient, decay,
          LayoutAttr(), ::mlir::DenseI64ArrayAttr());
  }]>];
  let hasVerifier = 1;
}

def Mtp_StoreOp : Mtp_Op<"store", [HasParent<"UpdateOp">]> {
  let summary = "Replaces a parameter with its updated value";
  let description = [{
    `copies` has the meaning that it has in `mtp.accumulated`.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$value,
                       OptionalAttr<DenseI64ArrayAttr>:$copies);
  let assemblyFormat = "$label `,` $value attr-dict `:` type($value)";
}

def Mtp_ResultOp : Mtp_Op<"result", [HasParent<"UpdateOp">]> {
  let summary = "Reports a scalar of the step";
  let description = [{
    With a `*` in `label` there is one scalar per layer. `copies` has the same
    meaning as in `mtp.accumulated`.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$value,
                       OptionalAttr<DenseI64ArrayAttr>:$copies);
  let assemblyFormat = "$label `,` $value attr-dict `:` type($value)";
}

#endif // MTPLAN_IR_STRUCTURE_OPS
