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
    This is reverse-mode differentiation. The pass precedes planning, so that
    layouts and communication of both halves are planned by the same rules.

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

    A module that is already differentiated is left unchanged.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def VerifyGradientsPass : Pass<"mtp-verify-gradients", "mlir::ModuleOp"> {
  let summary = "Gate: every parameter has exactly one gradient of its shape";
  let description = [{
    For each parameter that a segment reads, the segment's backward half has
    exactly one `mtp.accumulate`, and `mtp.update` has exactly one `mtp.adamw`.
    The value of each has the parameter's type. The pass changes nothing.
  }];
}

//===----------------------------------------------------------------------===//
// Stage: differentiated -> planned
//===----------------------------------------------------------------------===//

def RecomputePass : Pass<"mtp-recompute", "mlir::ModuleOp"> {
  let summary = "Recomputes activations in backward instead of saving them";
  let description = [{
    Rewrites the segments that repeat. If `what` is `full`, all activations that
    backward reads are recomputed from the segment's arguments (Chen et al.
    2016). If `what` is `selective`, only the attention cores are recomputed,
    from queries, keys and values (Korthikanti et al. 2022, section 5). A
    recomputed dropout keeps its mask name and therefore drops the same
    elements.

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

    After, where only `%x` is saved:

    ```mlir
      mtp.backward (%dy : tensor<1x4x8xf32>) {
        %again = mtp.einsum "h.*.fc.again" "bsi,io->bso" (%x, %w) : ...
        %du = mtp.activation_grad "h.*.act.dx" gelu (%again, %dy) : tensor<1x4x8xf32>
        ...
      }
    ```

    The module may be planned or not. In a planned module, a reshard of a
    recomputed value is repeated, too.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
  let options = [Option<"what", "what", "std::string", "\"full\"",
                        "full or selective">];
}

def VerifyLayoutsPass : Pass<"mtp-verify-layouts", "mlir::ModuleOp"> {
  let summary = "Gate: every value is read in the layout that it has";
  let description = [{
    Every operator has a strategy that names factors of the operator. Every
    operand has the layout that the strategy requires. Parameters, inputs,
    accumulators and values at segment boundaries have layouts that fit their
    tensors. Every split divides the size of its dimension. The pass changes
    nothing.
  }];
}

//===----------------------------------------------------------------------===//
// Stage: planned -> partitioned
//===----------------------------------------------------------------------===//

def InsertCollectivesPass : Pass<"mtp-insert-collectives", "mlir::ModuleOp"> {
  let summary = "Turns the planned step into the program of one rank";
  let description = [{
    Every tensor gets the shape of one rank's shard. Every `mtp.reshard` becomes
    a sequence of collectives and local steps that changes the layout axis by
    axis. Strategies and the layouts of parameters, inputs and accumulators are
    kept, because they determine which part of a global tensor the shard of a
    rank is.

    Before:

    ```mlir
    %z = mtp.reshard %y from <[[], [], []], partial = ["tp"]> to <[[], [], []]> cause "h.*.mlp.fc2" : tensor<8x64x32xbf16>
    ```

    After:

    ```mlir
    %z = mtp.all_reduce %y over "tp" cause "h.*.mlp.fc2" : tensor<8x64x32xbf16>
    ```

    The pass does not group neighbouring collectives.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def VerifyPartitionedPass : Pass<"mtp-verify-partitioned", "mlir::ModuleOp"> {
  let summary = "Gate: no reshard is left, and all shapes are local";
  let description = [{
    No `mtp.reshard` remains. The axis of every collective has more than one
    rank. In the local shapes of an operator's operands and results, each factor
    has the same size everywhere. The pass changes nothing.
  }];
}

//===----------------------------------------------------------------------===//
// Stage: partitioned -> a program for every stage of the pipeline
//===----------------------------------------------------------------------===//

def SplitStagesPass : Pass<"mtp-split-stages", "mlir::ModuleOp"> {
  let summary = "Gives every stage of a pipeline a program of its own";
  let description = [{
    `chunk` is the chunk (virtual stage) of a segment, and `mtp.stages` is the
    number of stages, to which the chunks are assigned round-robin. Between two
    consecutive chunks, the pass inserts two segments: one sends the values that
    the first chunk yields, and the other receives these values in the second
    chunk. The gradients return in the backward halves of these segments. Each
    rank sends and receives its own shards. If a value only passes through a
    stage, the stage receives the value and sends it to the next stage. Every
    stage updates the parameters that it holds. The gradient of a parameter that
    several stages hold is summed over these stages, so that all these stages
    compute the same update. The mesh gets a new outermost axis, "pp".

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

    A module without `mtp.stages` is left unchanged. The pass does not choose
    the order in which a stage runs its chunks and micro-batches.
  }];
  let dependentDialects = ["mtplan::ir::MtpDialect"];
}

def VerifyStagesPass : Pass<"mtp-verify-stages", "mlir::ModuleOp"> {
  let summary = "Gate: stages communicate only by matching messages and sums";
  let description = [{
    All stages have the same number of chunks. Chunks exchange values only by
    messages. Every message has one sender and one receiver, with the same type,
    in consecutive chunks. Messages are received in the order in which they are
    sent, where backward runs the segments of a chunk in reverse order. The
    gradient of a sent value returns to the argument that was sent. Each stage
    updates every layer of every parameter that it holds exactly once, with the
    parameter's own gradient. The gradient of a parameter that several stages
    hold is summed over exactly these stages, after the same operations on each
    of these stages, and the order of these sums cannot deadlock. The pass
    changes nothing. The pass does not verify the computations between messages;
    a proof verifies them (passes/verify/prove.h).
  }];
}

#endif // MTPLAN_PARTITION_PASSES_TD
