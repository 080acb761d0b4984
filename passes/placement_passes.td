//===- placement_passes.td - From the programs of ranks to memory ---------===//

#ifndef MTPLAN_PLACEMENT_PASSES_TD
#define MTPLAN_PLACEMENT_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Stage: partitioned, with tasks -> decided
//===----------------------------------------------------------------------===//

def SeparateCarriedPass : Pass<"mtp-separate-carried", "mlir::ModuleOp"> {
  let summary = "Copies carried values that have a place elsewhere";
  let description = [{
    A program serves all copies of a segment because each copy carries its
    values on in memory of their own. A value that is yielded twice, at another
    position than it came, or that belongs to a parameter is copied first.

    Before:

    ```mlir
    mtp.yield %y, %y : tensor<4x8xf32>, tensor<4x8xf32>
    ```

    After:

    ```mlir
    %z = mtp.scale "h.handed_on.1" (%y) by 1.0 : tensor<4x8xf32>
    mtp.yield %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
    ```

    Placing the values is not its job: `mtp-place-memory` rejects a value that
    would need two places.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def BeginSumsPass : Pass<"mtp-begin-sums", "mlir::ModuleOp"> {
  let summary = "Says with which term every sum of gradients begins";
  let description = [{
    A sum over micro-batches begins with its first term, which is stored
    whatever was there: no accumulator is cleared or read before. `mtp.tasks`
    says which `mtp.accumulate` runs first, and in which micro-batch; where all
    copies of a segment add to one sum, the copy's number follows.

    Before and after:

    ```mlir
    mtp.accumulate "h.*.w", %dw : tensor<8x8xf32>
    mtp.accumulate "h.*.w", %dw {mtp.first_term = array<i64: 0>} : tensor<8x8xf32>
    ```

    With `sums-per-use`, a segment that does not repeat gets `mtp.own_sum` for a
    weight that an earlier segment uses, too: then the order of micro-batches
    does not mix the two. Fails where a sum gets no term in a step, or where who
    adds first is not the same in all layers. Choosing the order of tasks is not
    its job.
  }];
  let options = [
    Option<"sumsPerUse", "sums-per-use", "bool", "false",
           "a weight that several segments of a stage use has a sum of gradients "
           "for each of those that are not repeated">
  ];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def FuseEpiloguesPass : Pass<"mtp-fuse-epilogues", "mlir::ModuleOp"> {
  let summary = "Fuses operators into the kernel that makes their operand";
  let description = [{
    The result of an einsum goes to an activation, its gradient, an `add` or an
    `accumulate`, that of a dropout or of a norm's gradient to an `add`, that of
    a sum to an `accumulate`. Such a consumer moves right behind its producer,
    or the producer in front of it, and one kernel computes both. The planner
    prices what the same rules allow.

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

    Which library computes the pair is not its job.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def FuseBiasGradientsPass
    : Pass<"mtp-fuse-bias-gradients", "mlir::ModuleOp"> {
  let summary = "Fuses bias gradients into products of weight gradients";
  let description = [{
    The gradient of a bias is the sum of a tensor that the product of the
    weight's gradient reads, too. The sum moves behind the product, and one
    kernel reads the tensor once. Both add to sums that begin alike, or neither
    adds to one.

    Before and after:

    ```mlir
    %dw = mtp.einsum "fc.dw" "bi,bo->io" (%x, %dy) : ...
    %db = mtp.sum "fc.db" (%dy) ...

    %dw = mtp.einsum "fc.dw" "bi,bo->io" (%x, %dy) : ...
    %db = mtp.sum "fc.db" (%dy) {mtp.fused = "bias_gradient"} ...
    ```

    Runs behind `mtp-fuse-epilogues`; finding epilogues is not its job.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def BatchProductsPass : Pass<"mtp-batch-products", "mlir::ModuleOp"> {
  let summary = "Batches like products that share an operand";
  let description = [{
    The products of attention that compute queries, keys and values from one
    input, and those of the gradients of their weights, are too small to fill a
    device. Einsums of a segment that read one operand in common and differ only
    in their other tensors become one batched product, if all that they read is
    made before the first of them.

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

    Runs behind `mtp-fuse-bias-gradients`. Even distances in memory, which a
    library asks for, are the job of `mtp-place-memory`; it takes products out
    of a batch for which it has no room.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def VerifyFusedPass : Pass<"mtp-verify-fused", "mlir::ModuleOp"> {
  let summary = "Gate: what is fused can be one kernel";
  let description = [{
    An epilogue comes right behind an operation that it can be fused with; a
    bias gradient right behind a product, or its epilogue, that reads the same
    tensor and is fused alike. The products of a batch compute alike, share
    exactly one operand, and none of them needs the result of another. Changes
    nothing.
  }];
}

def GatherBlocksPass : Pass<"mtp-gather-blocks", "mlir::ModuleOp"> {
  let summary = "Gathers the weights of a segment at once";
  let description = [{
    With ZeRO 3, replicas share out the weights of a segment. Its programs begin
    with the all-gathers of all weights that they read, and backward ends with
    the reduce-scatters of their gradients, which are then accumulated. What
    moves over one axis is one launch, as in FSDP (Zhao et al., VLDB 2023,
    section 3.2.1), whose unit is a block, too. The gradient that is made last
    is reduced first, so that the launch waits for all.

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

    Gradients of weights that no program gathers (ZeRO 2) stay where they are.
    Numbering the launches is the job of `mtp-group-collectives`.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def GatherAheadPass : Pass<"mtp-gather-ahead", "mlir::ModuleOp"> {
  let summary = "Gathers the weights of a segment beside the one before";
  let description = [{
    The weights of a layer arrive while the layer before computes (prefetching;
    FSDP, Zhao et al., VLDB 2023, section 3.3.2), forward and backward, and so
    do those of a segment that follows another. Each run waits for what it has
    gathered, so that two blocks are in memory at a time. What a task's first
    run reads is gathered before it.

    Before and after:

    ```mlir
    %a = mtp.all_gather %p over "dp" dim 0 cause "h.*.a" {mtp.of_block} : ...
    %a = mtp.all_gather %p over "dp" dim 0 cause "h.*.a" {mtp.ahead, mtp.of_block} : ...
    ```

    Runs behind `mtp-gather-blocks`. A weight that both directions read stays in
    the segment's own run. Places for two blocks are the job of
    `mtp-place-memory`.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def OverlapReductionsPass
    : Pass<"mtp-overlap-reductions", "mlir::ModuleOp"> {
  let summary = "Reduces gradients beside the backward of other layers";
  let description = [{
    A reduction over replicas of the sum of a gradient over all micro-batches
    runs in the backward program of the segment that makes the gradient, with
    the last micro-batch, and the layers before it do not wait. An all-reduce
    works in place. A reduce-scatter leaves its shard where the gradient of the
    next copy was, which needs room for one more shard. A later reduction of the
    gradient follows if layers have no other traffic over its axis, for they
    would have to wait.

    Before and after:

    ```mlir
    %g = mtp.accumulated "h.*.w" : tensor<8x8xf32>
    %s = mtp.all_reduce %g over "dp" cause "h.*.w" : tensor<8x8xf32>
    %s = mtp.all_reduce %g over "dp" cause "h.*.w" {mtp.overlapped = "h"} : tensor<8x8xf32>
    ```

    A reduction stays in the update if other stages take part in it, if several
    segments have sums of their own for the weight, or if the gradient is not
    finished by the last backward run of its own segment. The order of the
    reductions is the job of `mtp-order-update`.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def OrderUpdatePass : Pass<"mtp-order-update", "mlir::ModuleOp"> {
  let summary = "Orders the update so that equal work is consecutive";
  let description = [{
    All work on gradients comes before all work on weights, and operations for
    other copies of layers are not mixed. Reductions over a first axis come
    before those over a second, and those in reverse order, so that the first of
    them waits for all before it and the others wait for nothing (PyTorch DDP,
    Li et al., VLDB 2020, section 3.2.3, reduces its buckets in the reverse
    order of the model for the same reason). All updates of a layer come
    before what follows from them, which again is in reverse order.
    Reductions that overlap the backward are in the reverse order in which their
    gradients are ready.

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

    Reductions keep their order if other stages take part in some of them,
    because these stages order theirs. With `offload-optimizer`, what follows
    from an update stays right behind it: the host updates one weight after the
    other. Which operations are one launch is not its job.
  }];
  let options = [
    Option<"offloads", "offload-optimizer", "bool", "false",
           "the host updates the optimizer's state">
  ];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def AssignStreamsPass : Pass<"mtp-assign-streams", "mlir::ModuleOp"> {
  let summary = "Gives every operation its stream";
  let description = [{
    Collectives over replicas run on stream `data`, those over `pp` and messages
    on `pipeline`, other collectives on `tensor`; what the host computes for an
    offloaded optimizer runs on `host`, and all else on `compute`. Calls of one
    group stay in order, for they are on one stream.

    Before and after:

    ```mlir
    %s = mtp.all_reduce %dx over "tp" cause "fc.dx" : tensor<4x8xf32>
    %s = mtp.all_reduce %dx over "tp" cause "fc.dx" {mtp.stream = "tensor"} : tensor<4x8xf32>
    ```

    Who waits for whom is not its job: it follows from streams and memory.
  }];
  let options = [
    Option<"offloads", "offload-optimizer", "bool", "false",
           "the host updates the optimizer's state">
  ];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def GroupCollectivesPass : Pass<"mtp-group-collectives", "mlir::ModuleOp"> {
  let summary = "Makes one launch of consecutive collectives of a group";
  let description = [{
    A layer has a dozen parameters, most of them small, whose collectives take
    less time than their launch. Consecutive collectives over one axis become one
    launch of at most 64 calls, if the operands of all of them are ready when
    the first one's are; those of a block wait for each other. All-to-all is left alone, because ranks compose it of
    messages, and so are sums over stages, which stages order on their own.

    Before and after:

    ```mlir
    %b = mtp.all_gather %v over "dp" dim 0 cause "h.*.b" : ...
    %w = mtp.all_gather %u over "dp" dim 0 cause "h.*.w" : ...

    %b = mtp.all_gather %v over "dp" dim 0 cause "h.*.b" {mtp.batch = 0 : i64} : ...
    %w = mtp.all_gather %u over "dp" dim 0 cause "h.*.w" {mtp.batch = 0 : i64} : ...
    ```

    Runs behind `mtp-assign-streams`. Moving collectives next to each other is
    the job of `mtp-order-update` and `mtp-gather-blocks`.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def BatchUpdatesPass : Pass<"mtp-batch-updates", "mlir::ModuleOp"> {
  let summary = "Makes one launch of the updates of a layer's parameters";
  let description = [{
    Consecutive kernels of one name that work on updated weights become one
    launch, of all copies of the layer if a program has nothing else.

    Before and after:

    ```mlir
    mtp.adamw "h.*.w", %gw ...
    mtp.adamw "h.*.b", %gb ...

    mtp.adamw "h.*.w", %gw {mtp.batch = 0 : i64} ...
    mtp.adamw "h.*.b", %gb {mtp.batch = 0 : i64} ...
    ```

    Runs behind `mtp-assign-streams`. What the host updates is not batched. How
    many parameters fit into one program is the job of `mtp-place-memory`.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def VerifyStreamsPass : Pass<"mtp-verify-streams", "mlir::ModuleOp"> {
  let summary = "Gate: every operation has a stream";
  let description = [{
    Every operation that becomes an instruction is on a known stream. Operations
    that are fused, and those that are one launch, are on the same. Grouped
    collectives are of one process group and consecutive, and none of a launch
    needs the result of another. What overlaps a backward reduces a gradient of
    that segment. What the run before gathers is a parameter that only its own
    program reads. Changes nothing.
  }];
}

//===----------------------------------------------------------------------===//
// Stage: decided -> placed
//===----------------------------------------------------------------------===//

def PlaceMemoryPass : Pass<"mtp-place-memory", "mlir::ModuleOp"> {
  let summary = "Assigns every tensor of every stage its place in memory";
  let description = [{
    Writes `mtp.places` and `mtp.state`. What is alive within one program shares
    a workspace by turns, assigned best fit, the largest first; operations that
    `mtp.fused` or `mtp.batch` makes one launch need all their tensors at one
    time. Tensors of a batched product are at even distances; products for which
    there is no room without a larger workspace leave their batch. What backward
    reads of forward has a slot for every micro-batch that is in flight by
    `mtp.tasks`. The next copy of a segment finds a carried value where the copy
    before left it.

    Before and after, in part:

    ```mlir
    %y = mtp.add "h.*.add" (%x, %z) : tensor<4x8xf32>
    %y = mtp.add "h.*.add" (%x, %z) {mtp.places = [#mtp.place<arena = "workspace",
        offset = 256, size = 128, entries = 2, entry_stride = 256, slots = 1,
        slot_stride = 0, entry = 1, step = 1, type = f32>]} : tensor<4x8xf32>
    ```

    Choosing the order of a stage's tasks or what is fused is not its job.
  }];
  let options = [
    Option<"gradientBytes", "gradient-bytes", "int", "0",
           "of an accumulator's element, where the gradient's is narrower: 4, or "
           "0 for the gradient's own">,
    Option<"offloads", "offload-optimizer", "bool", "false",
           "moments and masters are in the host's memory, with a place for the "
           "gradient that arrives and, if the weight is narrower than its "
           "master, for the weight that leaves">
  ];
  let statistics = [
    Statistic<"used", "workspace-used", "bytes of all workspaces">,
    Statistic<"peak", "workspace-peak", "bytes that live at once in them">
  ];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

#endif // MTPLAN_PLACEMENT_PASSES_TD
