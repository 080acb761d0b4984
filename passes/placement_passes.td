//===- placement_passes.td - From the programs of ranks to memory ---------===//

#ifndef MTPLAN_PLACEMENT_PASSES_TD
#define MTPLAN_PLACEMENT_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Stage: partitioned, with tasks -> decided
//===----------------------------------------------------------------------===//

def SeparateCarriedPass : Pass<"mtp-separate-carried", "mlir::ModuleOp"> {
  let summary = "Copies yielded values that need memory of their own";
  let description = [{
    All layers of a segment run one program, which needs separate memory for
    every value that a layer yields to the next. The pass therefore copies a
    value that is yielded twice, an argument that is yielded at another
    position, and a yielded parameter.

    Before:

    ```mlir
    mtp.yield %y, %y : tensor<4x8xf32>, tensor<4x8xf32>
    ```

    After:

    ```mlir
    %z = mtp.scale "h.handed_on.1" (%y) by 1.0 : tensor<4x8xf32>
    mtp.yield %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
    ```

    The pass does not assign memory. `mtp-place-memory` rejects a value that
    would need two places.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def BeginSumsPass : Pass<"mtp-begin-sums", "mlir::ModuleOp"> {
  let summary = "Determines the first term of every gradient sum";
  let description = [{
    The first term of a sum over micro-batches overwrites the accumulator, so
    that no accumulator has to be cleared. From the order of tasks
    (`mtp.tasks`), the pass finds the `mtp.accumulate` that adds the first term,
    and writes the micro-batch of this term into `mtp.first_term`. If all layers
    of a segment add to one accumulator, the second number in `mtp.first_term`
    is the layer that adds the first term.

    Before and after:

    ```mlir
    mtp.accumulate "h.*.w", %dw : tensor<8x8xf32>
    mtp.accumulate "h.*.w", %dw {mtp.first_term = array<i64: 0>} : tensor<8x8xf32>
    ```

    With `sums-per-use`, a segment that does not repeat gets its own accumulator
    (`mtp.own_sum`) for a weight that an earlier segment uses, too. The result
    then does not depend on how the schedule interleaves the terms of the two
    segments. The pass fails if an accumulator gets no term in a step, or if the
    operation or the micro-batch of the first term differs between layers. The
    pass does not choose the order of tasks.
  }];
  let options = [
    Option<"sumsPerUse", "sums-per-use", "bool", "false",
           "each segment that does not repeat has its own gradient accumulator "
           "for a weight that several segments of a stage use">
  ];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def FuseEpiloguesPass : Pass<"mtp-fuse-epilogues", "mlir::ModuleOp"> {
  let summary = "Fuses operators into the kernels of their producers";
  let description = [{
    An einsum can compute an activation of its result, an activation's gradient,
    an `add` or an `accumulate` as its epilogue; a dropout and a norm's gradient
    can compute an `add`; and a sum can compute an `accumulate`. The consumer
    moves right after its producer, or the producer right before its consumer,
    and one kernel computes both. The planner prices operators by the same
    rules.

    Before:

    ```mlir
    %y = mtp.einsum "h.*.proj" "bi,io->bo" (%x, %w) : ...
    %r = mtp.scale "h.*.scale" (%x) by 2.0 : tensor<4x8xf32>
    %z = mtp.add "h.*.add" (%x, %y) : tensor<4x8xf32>
    ```

    After:

    ```mlir
    %y = mtp.einsum "h.*.proj" "bi,io->bo" (%x, %w) : ...
    %z = mtp.add "h.*.add" (%x, %y) {mtp.fused = "epilogue"} : tensor<4x8xf32>
    %r = mtp.scale "h.*.scale" (%x) by 2.0 : tensor<4x8xf32>
    ```

    The pass does not choose the library that runs the kernel.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def FuseBiasGradientsPass
    : Pass<"mtp-fuse-bias-gradients", "mlir::ModuleOp"> {
  let summary = "Fuses bias gradients into the products of weight gradients";
  let description = [{
    The gradient of a bias is the sum of a tensor that the product for the
    weight's gradient also reads. The sum moves right after the product, so that
    one kernel reads the tensor once. Either both results are added to
    accumulators, with the first term in the same micro-batch and layer, or
    neither is.

    Before and after:

    ```mlir
    %dw = mtp.einsum "fc.dw" "bi,bo->io" (%x, %dy) : ...
    %db = mtp.sum "fc.db" (%dy) ...

    %dw = mtp.einsum "fc.dw" "bi,bo->io" (%x, %dy) : ...
    %db = mtp.sum "fc.db" (%dy) {mtp.fused = "bias_gradient"} ...
    ```

    The pass runs after `mtp-fuse-epilogues`, which finds the epilogues.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def BatchProductsPass : Pass<"mtp-batch-products", "mlir::ModuleOp"> {
  let summary = "Batches products of equal shapes that share an operand";
  let description = [{
    The products that compute queries, keys and values from one input, and the
    products for the gradients of their weights, are too small to fill a device.
    Einsums of a segment that share one operand and differ only in their other
    tensors become one batched product, if all operands exist before the first
    of these einsums.

    Before:

    ```mlir
    %q = mtp.einsum "h.*.q" "bi,io->bo" (%x, %wq) : ...
    %k = mtp.einsum "h.*.k" "bi,io->bo" (%x, %wk) : ...
    ```

    After:

    ```mlir
    %q = mtp.einsum "h.*.q" "bi,io->bo" (%x, %wq) {mtp.batch = 0 : i64} : ...
    %k = mtp.einsum "h.*.k" "bi,io->bo" (%x, %wk) {mtp.batch = 0 : i64} : ...
    ```

    The pass runs after `mtp-fuse-bias-gradients`. A library needs equal
    distances in memory between the tensors of a batch. `mtp-place-memory`
    chooses the offsets, and removes products from a batch if equal distances
    would need more memory.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def VerifyFusedPass : Pass<"mtp-verify-fused", "mlir::ModuleOp"> {
  let summary = "Gate: fused operations can run as one kernel";
  let description = [{
    An epilogue comes right after an operation that it can be fused with. A bias
    gradient comes right after a product that reads the same tensor, or after
    the product's epilogue, and has the same kind of epilogue. The products of a
    batch differ only in their tensors, share exactly one operand, and do not
    read each other's results. The pass changes nothing.
  }];
}

def GatherBlocksPass : Pass<"mtp-gather-blocks", "mlir::ModuleOp"> {
  let summary = "Gathers the weights of a segment at once";
  let description = [{
    With ZeRO 3, the weights of a segment are sharded over replicas. Each
    program of the segment begins with the all-gathers of all weights that the
    program reads. Backward ends with the reduce-scatters of the weights'
    gradients, and these gradients are then accumulated. All transfers of a
    block over one axis are one launch, as in FSDP (Zhao et al., VLDB 2023,
    section 3.2.1). The gradient that is computed last is reduced first, so that
    the launch waits for all gradients.

    Before:

    ```mlir
    %a = mtp.all_gather %pa over "dp" dim 0 cause "h.*.a" : ...
    %y = mtp.einsum "h.*.fc1" "bi,io->bo" (%x, %a) : ...
    %b = mtp.all_gather %pb over "dp" dim 0 cause "h.*.b" : ...
    %z = mtp.einsum "h.*.fc2" "bi,io->bo" (%y, %b) : ...
    ```

    After:

    ```mlir
    %a = mtp.all_gather %pa over "dp" dim 0 cause "h.*.a" {mtp.of_block} : ...
    %b = mtp.all_gather %pb over "dp" dim 0 cause "h.*.b" {mtp.of_block} : ...
    %y = mtp.einsum "h.*.fc1" "bi,io->bo" (%x, %a) : ...
    %z = mtp.einsum "h.*.fc2" "bi,io->bo" (%y, %b) : ...
    ```

    Reductions for weights that no program gathers (ZeRO 2) are not moved.
    `mtp-group-collectives` numbers the launches.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def GatherAheadPass : Pass<"mtp-gather-ahead", "mlir::ModuleOp"> {
  let summary = "Gathers weights while the previous segment computes";
  let description = [{
    The weights of a layer are gathered while the previous layer computes
    (prefetching; FSDP, Zhao et al., VLDB 2023, section 3.3.2), in forward and
    in backward. The weights of the first run of a segment are gathered while
    the last run of the previous segment computes. Each run waits for the
    gathers that it launches, so at most two blocks are in memory at a time. A
    program before the first run of a task gathers the weights of that run.

    Before and after:

    ```mlir
    %a = mtp.all_gather %p over "dp" dim 0 cause "h.*.a" {mtp.of_block} : ...
    %a = mtp.all_gather %p over "dp" dim 0 cause "h.*.a" {mtp.ahead, mtp.of_block} : ...
    ```

    The pass runs after `mtp-gather-blocks`. If forward and backward read the
    same gathered weight, the weight is gathered in the segment's own run.
    `mtp-place-memory` reserves memory for two blocks.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def OverlapReductionsPass
    : Pass<"mtp-overlap-reductions", "mlir::ModuleOp"> {
  let summary = "Overlaps gradient reductions with backward";
  let description = [{
    The reduction of a gradient accumulator runs in the backward program of the
    segment that adds the last term, in the last micro-batch. The backward of
    earlier layers does not wait for the reduction. An all-reduce is in place. A
    reduce-scatter writes its shard over the gradient of the next layer, which
    is already reduced; the last layer needs memory for one more shard. A second
    reduction of the shard also overlaps if it runs over an axis of replicas,
    because no traffic of the layers over such an axis delays it.

    Before and after:

    ```mlir
    %g = mtp.accumulated "h.*.w" : tensor<8x8xf32>
    %s = mtp.all_reduce %g over "dp" cause "h.*.w" : tensor<8x8xf32>
    %s = mtp.all_reduce %g over "dp" cause "h.*.w" {mtp.overlapped = "h"} : tensor<8x8xf32>
    ```

    A reduction stays in the update if other stages take part in it, if several
    segments have accumulators of their own for the weight, or if the gradient
    is not complete after the segment's last backward run. `mtp-order-update`
    chooses the order of the reductions.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def OrderUpdatePass : Pass<"mtp-order-update", "mlir::ModuleOp"> {
  let summary = "Orders the update so that like operations are consecutive";
  let description = [{
    Operations on gradients come before operations on weights, and operations
    for different ranges of layers are not interleaved. The first reductions of
    all gradients come first, and the second reductions follow in reverse order.
    The first of the second reductions then waits for the last of the first
    reductions, and the other second reductions need not wait (PyTorch DDP
    reduces its buckets in the reverse order of the model for the same reason:
    Li et al., VLDB 2020, section 3.2.3). All `mtp.adamw` of a layer come before
    the operations on their results, which are in reverse order for the same
    reason. First reductions that overlap with backward are in the reverse of
    the order in which their gradients become complete.

    Before:

    ```mlir
    %u = mtp.adamw "h.*.w", %gw ...
    %w = mtp.all_gather %u over "dp" dim 0 cause "h.*.w" : ...
    %v = mtp.adamw "h.*.b", %gb ...
    %b = mtp.all_gather %v over "dp" dim 0 cause "h.*.b" : ...
    ```

    After:

    ```mlir
    %u = mtp.adamw "h.*.w", %gw ...
    %v = mtp.adamw "h.*.b", %gb ...
    %b = mtp.all_gather %v over "dp" dim 0 cause "h.*.b" : ...
    %w = mtp.all_gather %u over "dp" dim 0 cause "h.*.w" : ...
    ```

    Reductions keep their order if one of them runs over stages, because all
    stages must have the same order. With `offload-optimizer`, the operations on
    an updated weight stay right after its `mtp.adamw`, because the host updates
    the weights one after another. The pass does not group operations into
    launches.
  }];
  let options = [
    Option<"offloads", "offload-optimizer", "bool", "false",
           "the host updates the optimizer's state">
  ];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def AssignStreamsPass : Pass<"mtp-assign-streams", "mlir::ModuleOp"> {
  let summary = "Assigns a stream to every operation";
  let description = [{
    Collectives over axes of replicas run on stream `data`, collectives over
    "pp" and messages on `pipeline`, and all other collectives on `tensor`. The
    `mtp.adamw` of an offloaded optimizer run on `host`, and all other
    operations on `compute`. All calls of one process group are on one stream
    and therefore stay in order.

    Before and after:

    ```mlir
    %s = mtp.all_reduce %dx over "tp" cause "fc.dx" : tensor<4x8xf32>
    %s = mtp.all_reduce %dx over "tp" cause "fc.dx" {mtp.stream = "tensor"} : tensor<4x8xf32>
    ```

    The pass does not add waits between streams; codegen derives the waits from
    the streams and the memory that operations access.
  }];
  let options = [
    Option<"offloads", "offload-optimizer", "bool", "false",
           "the host updates the optimizer's state">
  ];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def GroupCollectivesPass : Pass<"mtp-group-collectives", "mlir::ModuleOp"> {
  let summary = "Groups consecutive collectives of a process group";
  let description = [{
    A layer has about a dozen parameters, and most of them are so small that a
    collective takes less time than its launch. Consecutive collectives over one
    axis become one launch of at most 64 calls, if the operands of all these
    collectives are ready when the operand of the first collective is ready. The
    collectives of a block (`mtp-gather-blocks`) are grouped even if their
    operands are ready at different times. All-to-alls are not grouped, because
    they consist of messages between ranks. All-reduces over stages are not
    grouped, because other stages may have other operations between them.

    Before and after:

    ```mlir
    %b = mtp.all_gather %v over "dp" dim 0 cause "h.*.b" : ...
    %w = mtp.all_gather %u over "dp" dim 0 cause "h.*.w" : ...

    %b = mtp.all_gather %v over "dp" dim 0 cause "h.*.b" {mtp.batch = 0 : i64} : ...
    %w = mtp.all_gather %u over "dp" dim 0 cause "h.*.w" {mtp.batch = 0 : i64} : ...
    ```

    The pass runs after `mtp-assign-streams`. `mtp-gather-blocks` and
    `mtp-order-update` have already moved collectives next to each other.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def BatchUpdatesPass : Pass<"mtp-batch-updates", "mlir::ModuleOp"> {
  let summary = "Batches the updates of a layer's parameters";
  let description = [{
    Consecutive operations of the same kind on updated weights, such as
    `mtp.adamw`, become one launch. The launch covers all layers of a segment if
    the program contains nothing else.

    Before and after:

    ```mlir
    mtp.adamw "h.*.w", %gw ...
    mtp.adamw "h.*.b", %gb ...

    mtp.adamw "h.*.w", %gw {mtp.batch = 0 : i64} ...
    mtp.adamw "h.*.b", %gb {mtp.batch = 0 : i64} ...
    ```

    The pass runs after `mtp-assign-streams`. Updates on the host are not
    batched. `mtp-place-memory` decides how many parameters one program updates.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def VerifyStreamsPass : Pass<"mtp-verify-streams", "mlir::ModuleOp"> {
  let summary = "Gate: every operation has a stream, and launches are valid";
  let description = [{
    Every operation that becomes an instruction is on a known stream. Fused
    operations, and the operations of one launch, are on one stream. Grouped
    collectives are consecutive and belong to one process group. No operation of
    a launch reads the result of another operation of the launch. A reduction
    that overlaps with the backward of a segment reduces a gradient to which
    this backward adds. A parameter that the previous run gathers is read only
    by the program of its own block. The pass changes nothing.
  }];
}

//===----------------------------------------------------------------------===//
// Stage: decided -> placed
//===----------------------------------------------------------------------===//

def PlaceMemoryPass : Pass<"mtp-place-memory", "mlir::ModuleOp"> {
  let summary = "Assigns memory to every tensor of every stage";
  let description = [{
    Writes `mtp.places` and `mtp.state`. Values that live within one program
    share a workspace. Their offsets are assigned by best fit, the largest value
    first; operations of one launch (`mtp.fused`, `mtp.batch`) need all their
    tensors at the same time. Tensors of a batched product are placed at equal
    distances. A product is removed from its batch if this would need a larger
    workspace. Forward values that backward reads have a slot for every
    micro-batch that is in flight according to `mtp.tasks`. A layer reads a
    carried value at the offset to which the previous layer wrote it.

    Before and after, in part:

    ```mlir
    %y = mtp.add "h.*.add" (%x, %z) : tensor<4x8xf32>
    %y = mtp.add "h.*.add" (%x, %z) {mtp.places = [#mtp.place<arena = "workspace",
        offset = 256, size = 128, entries = 2, entry_stride = 256, slots = 1,
        slot_stride = 0, entry = 1, step = 1, type = f32>]} : tensor<4x8xf32>
    ```

    The pass chooses neither the order of a stage's tasks nor the fused
    operations.
  }];
  let options = [
    Option<"gradientBytes", "gradient-bytes", "int", "0",
           "minimum bytes per element of a gradient accumulator: 4, or 0 for "
           "the width of the gradient's type">,
    Option<"offloads", "offload-optimizer", "bool", "false",
           "moments and master weights are in host memory, with buffers for "
           "the copied gradient and, if the weight is narrower than its "
           "master, for the weight to be copied back">
  ];
  let statistics = [
    Statistic<"used", "workspace-used", "bytes of all workspaces">,
    Statistic<"peak", "workspace-peak",
              "peak of the live bytes in all workspaces">
  ];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

#endif // MTPLAN_PLACEMENT_PASSES_TD
