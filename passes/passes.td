//===- passes.td - Every pass, in the order of the pipeline ---------------===//

#ifndef MTPLAN_PASSES_TD
#define MTPLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Stage: model -> differentiated
//===----------------------------------------------------------------------===//

def DifferentiatePass : Pass<"mtp-differentiate", "mlir::ModuleOp"> {
  let summary = "Builds the backward half of every segment and the update";
  let description = [{
    Reverse-mode differentiation in the IR, before anything is planned, so that
    what the backward half communicates is found by the same rule as the rest.

    Before:

    ```mlir
    mtp.segment @h repeat 2 (%x : tensor<1x4x8xf32>) {
      %w = mtp.parameter "h.*.fc.weight" : tensor<8x8xf32>
      %y = mtp.einsum "h.*.fc" "bsi,io->bso" (%x, %w) : (tensor<1x4x8xf32>, tensor<8x8xf32>) -> tensor<1x4x8xf32>
      mtp.yield %y : tensor<1x4x8xf32>
    }
    ```

    After:

    ```mlir
    mtp.segment @h repeat 2 (%x : tensor<1x4x8xf32>) {
      ...
      mtp.backward (%dy : tensor<1x4x8xf32>) {
        %dx = mtp.einsum "h.*.fc.dx" "bso,io->bsi" (%dy, %w) : ...
        %dw = mtp.einsum "h.*.fc.dw" "bsi,bso->io" (%x, %dy) : ...
        mtp.accumulate "h.*.fc.weight", %dw : tensor<8x8xf32>
        mtp.yield %dx : tensor<1x4x8xf32>
      }
      mtp.yield %y : tensor<1x4x8xf32>
    }
    mtp.update {
      %g = mtp.accumulated "h.*.fc.weight" : tensor<8x8xf32>
      mtp.adamw "h.*.fc.weight", %g {decay} : tensor<8x8xf32>
    }
    ```

    A module that has its backward halves is left as it is.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def VerifyGradientsPass : Pass<"mtp-verify-gradients", "mlir::ModuleOp"> {
  let summary = "Gate: every parameter has exactly one gradient of its shape";
  let description = [{
    In each segment that reads a parameter, exactly one `mtp.accumulate` of its
    type; in `mtp.update`, exactly one `mtp.adamw`. Changes nothing.
  }];
}

//===----------------------------------------------------------------------===//
// Stage: differentiated -> planned
//===----------------------------------------------------------------------===//

def VerifyLayoutsPass : Pass<"mtp-verify-layouts", "mlir::ModuleOp"> {
  let summary = "Gate: every value is read in the layout it is made in";
  let description = [{
    Every compute op has a strategy whose factors are its own, every operand
    arrives in the layout the strategy reads it in, parameters, inputs,
    accumulators and boundaries have layouts that fit their tensors, and every
    split divides. Changes nothing.
  }];
}

def RecomputePass : Pass<"mtp-recompute", "mlir::ModuleOp"> {
  let summary = "Recomputes activations in backward instead of keeping them";
  let description = [{
    Rewrites the segments that repeat. If `what` is `full`, all that backward
    reads is recomputed from what the segment is handed (Chen et al. 2016); if it
    is `selective`, the cores of attention are recomputed from queries, keys and
    values (Korthikanti et al. 2022, section 5). Masks are drawn by name, so that
    both runs drop the same elements.

    Before:

    ```mlir
    mtp.segment @h repeat 2 (%x : tensor<1x4x8xf32>) {
      %u = mtp.einsum "h.*.fc" "bsi,io->bso" (%x, %w) : ...
      %y = mtp.activation "h.*.act" gelu (%u) : tensor<1x4x8xf32>
      mtp.backward (%dy : tensor<1x4x8xf32>) {
        %du = mtp.activation_grad "h.*.act.dx" gelu (%u, %dy) : tensor<1x4x8xf32>
        ...
      }
      mtp.yield %y : tensor<1x4x8xf32>
    }
    ```

    After, where `%x` alone is kept:

    ```mlir
      mtp.backward (%dy : tensor<1x4x8xf32>) {
        %again = mtp.einsum "h.*.fc.again" "bsi,io->bso" (%x, %w) : ...
        %du = mtp.activation_grad "h.*.act.dx" gelu (%again, %dy) : tensor<1x4x8xf32>
        ...
      }
    ```

    Works on differentiated and on planned modules; conversions between layouts
    run again with what they convert.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
  let options = [Option<"what", "what", "std::string", "\"full\"",
                        "full or selective">];
}

//===----------------------------------------------------------------------===//
// Stage: planned -> partitioned
//===----------------------------------------------------------------------===//

def InsertCollectivesPass : Pass<"mtp-insert-collectives", "mlir::ModuleOp"> {
  let summary = "Turns the planned step into the program of one rank";
  let description = [{
    Every tensor becomes the piece one rank holds, and every `mtp.reshard` the
    shortest sequence of collectives and local steps that does it, axis by axis.
    Strategies and the layouts of parameters, inputs and accumulators stay: they
    tell a rank where its pieces lie in the whole.

    Before:

    ```mlir
    %z = mtp.reshard %y from <[[], [], []], partial = ["tp"]> to <[[], [], []]> cause "h.*.mlp.fc2" : tensor<8x64x32xbf16>
    ```

    After:

    ```mlir
    %z = mtp.all_reduce %y over "tp" cause "h.*.mlp.fc2" : tensor<8x64x32xbf16>
    ```

    Merging neighbouring collectives is not its job.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def VerifyPartitionedPass : Pass<"mtp-verify-partitioned", "mlir::ModuleOp"> {
  let summary = "Gate: no layout mismatch is left, every shape is local";
  let description = [{
    No `mtp.reshard` remains, every collective's axis has more than one rank,
    and every operand's local shape is the one its op's strategy reads. Changes
    nothing.
  }];
}

//===----------------------------------------------------------------------===//
// Stage: partitioned -> a program for every stage of the pipeline
//===----------------------------------------------------------------------===//

def SplitStagesPass : Pass<"mtp-split-stages", "mlir::ModuleOp"> {
  let summary = "Gives every stage of a pipeline a program of its own";
  let description = [{
    Segments name their part of the pipeline by `chunk`, and the module names by
    `mtp.stages` the number of stages that hold the parts in turn. The ranks of
    two neighbouring stages send and receive what a chunk carries on to the next
    and the gradients that come back, piece by piece, in segments between the two
    chunks; a value that is carried through a chunk is received and sent on.
    Every stage updates the parameters it holds. The gradient of a parameter that
    several stages hold is summed over them, so that equal copies stay equal. The
    mesh gets its outermost axis, "pp".

    Before:

    ```mlir
    module attributes {mtp.mesh = #mtp.mesh<"tp" = 2>, mtp.partitioned, mtp.stages = 2 : i64} {
      mtp.segment @h repeat 2 chunk 0 (%x : tensor<4x8xf32>) {
        ...
        mtp.yield %y : tensor<4x8xf32>
      }
      mtp.segment @h_2 repeat 2 first 2 chunk 1 (%x : tensor<4x8xf32>) {
    ```

    After:

    ```mlir
    module attributes {mtp.mesh = #mtp.mesh<"pp" = 2, "tp" = 2>, mtp.partitioned} {
      mtp.segment @h repeat 2 chunk 0 (%x : tensor<4x8xf32>) {
        ...
        mtp.yield %y : tensor<4x8xf32>
      }
      mtp.segment @send_0 chunk 0 (%x : tensor<4x8xf32>) {
        mtp.send "carried_1.0", %x to 1 : tensor<4x8xf32>
        mtp.backward () {
          %dx = mtp.receive "carried_1.0.grad" from 1 : tensor<4x8xf32>
          mtp.yield %dx : tensor<4x8xf32>
        }
        mtp.yield
      }
      mtp.segment @receive_1 chunk 1 () {
        %x = mtp.receive "carried_1.0" from 0 : tensor<4x8xf32>
        mtp.backward (%dx : tensor<4x8xf32>) {
          mtp.send "carried_1.0.grad", %dx to 0 : tensor<4x8xf32>
          mtp.yield
        }
        mtp.yield %x : tensor<4x8xf32>
      }
      mtp.segment @h_2 repeat 2 first 2 chunk 1 (%x : tensor<4x8xf32>) {
    ```

    A module without `mtp.stages` is left as it is. In which order a stage goes
    through its chunks and micro-batches is not its job.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def VerifyStagesPass : Pass<"mtp-verify-stages", "mlir::ModuleOp"> {
  let summary = "Gate: stages exchange messages and sums only, which match";
  let description = [{
    All stages have the same number of chunks, which exchange nothing but
    messages. Every message has a sender and a receiver on neighbouring chunks,
    with one type, in the order of a run: backward goes from the last segment of
    a chunk to the first. A gradient goes back to the argument whose value was
    sent. Every parameter is updated once on each stage that holds it, copy by
    copy, with its own gradient. What several stages hold is summed over exactly
    these stages, which run the same sums of one type, made the same way, in
    orders in which no stage waits for ever. Changes nothing: a proof judges what
    a stage computes between messages.
  }];
}

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

def VerifyFusedPass : Pass<"mtp-verify-fused", "mlir::ModuleOp"> {
  let summary = "Gate: what is fused can be one kernel";
  let description = [{
    An epilogue comes right behind an operation that it can be fused with; a
    bias gradient right behind a product, or its epilogue, that reads the same
    tensor and is fused alike. Changes nothing.
  }];
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

def VerifyStreamsPass : Pass<"mtp-verify-streams", "mlir::ModuleOp"> {
  let summary = "Gate: every operation has a stream";
  let description = [{
    Every operation that becomes an instruction is on a known stream, and
    operations that are fused are on the same. Changes nothing.
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
    `mtp.fused` makes one kernel need all their tensors at one time. What backward
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
    Option<"scattersEarly", "scatters-early", "bool", "false",
           "the piece of a copy's gradient that ZeRO 1 keeps goes where the "
           "gradient of the next copy was, so that backward goes on while "
           "gradients are scattered">,
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

//===----------------------------------------------------------------------===//
// Any stage before partitioned
//===----------------------------------------------------------------------===//

def ShrinkPass : Pass<"mtp-shrink", "mlir::ModuleOp"> {
  let summary = "Makes every dimension a few elements, keeping what divides";
  let description = [{
    The result is the smallest module of the same structure in which every split
    of the mesh still divides, so that a proof can interpret it. Dimensions that
    the operators' factors make equal stay equal; repetitions are cut to two
    copies.
  }];
}

#endif // MTPLAN_PASSES_TD
