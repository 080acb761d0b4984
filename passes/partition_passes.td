//===- partition_passes.td - From a model to the programs of ranks --------===//

#ifndef MTPLAN_PARTITION_PASSES_TD
#define MTPLAN_PARTITION_PASSES_TD

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

// Only mtplan-opt runs this pass. moduleOf() in tools/driver/pipeline.cpp calls
// recompute() before mtp-verify-layouts, for the segments that recompute.
def RecomputePass : Pass<"mtp-recompute", "mlir::ModuleOp"> {
  let summary = "Recomputes activations in backward instead of keeping them";
  let description = [{
    Rewrites the segments that repeat. If `what` is `full`, all that backward
    reads is recomputed from the segment's arguments (Chen et al. 2016); if it
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

def VerifyLayoutsPass : Pass<"mtp-verify-layouts", "mlir::ModuleOp"> {
  let summary = "Gate: every value is read in the layout it is made in";
  let description = [{
    Every compute op has a strategy whose factors are its own, every operand
    arrives in the layout the strategy reads it in, parameters, inputs,
    accumulators and boundaries have layouts that fit their tensors, and every
    split divides. Changes nothing.
  }];
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
    orders without a deadlock. Changes nothing: a proof judges what
    a stage computes between messages.
  }];
}

#endif // MTPLAN_PARTITION_PASSES_TD
