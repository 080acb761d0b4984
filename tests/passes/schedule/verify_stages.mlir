// RUN: mtplan-opt %s --split-input-file --verify-diagnostics --mtp-verify-stages
// RUN: not mtplan-opt %s --split-input-file --mtp-verify-stages

// expected-error @below {{is not split over its stages}}
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned, mtp.stages = 2 : i64} {
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  mtp.yield
}
// expected-error @below {{has no chunk, but the module has 2 stages}}
mtp.segment @b () {
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  mtp.yield
}
// expected-error @below {{is of chunk 2, needs 0 or 1}}
mtp.segment @b chunk 2 () {
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
// expected-error @below {{yields 1 values to another stage, which only mtp.send can do}}
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.yield %x : tensor<2xf32>
}
mtp.segment @b chunk 1 (%x : tensor<2xf32>) {
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.backward (%dx : tensor<2xf32>) {
    mtp.yield
  }
  mtp.yield
}
// expected-error @below {{yields 1 gradients to another stage, which only mtp.send can do}}
mtp.segment @b chunk 1 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.backward () {
    mtp.yield %x : tensor<2xf32>
  }
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  // expected-error @below {{sends "m", which no operator receives}}
  mtp.send "m", %x to 1 : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  mtp.yield
}
mtp.segment @b chunk 1 () {
  // expected-error @below {{receives "m", which no operator sends}}
  %m = mtp.receive "m" from 0 : tensor<2xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  // expected-note @below {{the other end is here}}
  mtp.send "m", %x to 1 : tensor<2xf32>
  // expected-error @below {{sends a message that another operator sends}}
  mtp.send "m", %x to 1 : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.send "m", %x to 1 : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  // expected-note @below {{the other end is here}}
  %m = mtp.receive "m" from 0 : tensor<2xf32>
  // expected-error @below {{receives a message that another operator receives}}
  %n = mtp.receive "m" from 0 : tensor<2xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a repeat 2 chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  // expected-error @below {{is in a segment that repeats 2 times, but is one message}}
  mtp.send "m", %x to 1 : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  %m = mtp.receive "m" from 0 : tensor<2xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  // expected-note @below {{the other end is here}}
  mtp.send "m", %x to 1 : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  // expected-error @below {{receives 'tensor<1xf32>' where 'tensor<2xf32>' is sent}}
  %m = mtp.receive "m" from 0 : tensor<1xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 3>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  // expected-error @below {{sends to stage 2, but stage 1 receives it}}
  mtp.send "m", %x to 2 : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  // expected-note @below {{the other end is here}}
  %m = mtp.receive "m" from 0 : tensor<2xf32>
  mtp.yield
}
mtp.segment @c chunk 2 () {
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 3>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  // expected-note @below {{the other end is here}}
  mtp.send "m", %x to 1 : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  // expected-error @below {{receives from stage 2, but stage 0 sends it}}
  %m = mtp.receive "m" from 2 : tensor<2xf32>
  mtp.yield
}
mtp.segment @c chunk 2 () {
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  // expected-error @below {{is in one half of its segment, and its other end in the other}}
  mtp.send "m", %x to 1 : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  mtp.backward () {
    // expected-note @below {{the other end is here}}
    %m = mtp.receive "m" from 0 : tensor<2xf32>
    mtp.yield
  }
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 3>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  // expected-error @below {{goes from chunk 0 to chunk 2, which is not the next}}
  mtp.send "m", %x to 2 : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  mtp.yield
}
mtp.segment @c chunk 2 () {
  // expected-note @below {{the other end is here}}
  %m = mtp.receive "m" from 0 : tensor<2xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 3>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  mtp.backward () {
    // expected-note @below {{the other end is here}}
    %m = mtp.receive "m" from 2 : tensor<2xf32>
    mtp.yield
  }
  mtp.yield
}
mtp.segment @b chunk 1 () {
  mtp.backward () {
    mtp.yield
  }
  mtp.yield
}
mtp.segment @c chunk 2 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.backward () {
    // expected-error @below {{goes from chunk 2 to chunk 0, which is not the one before}}
    mtp.send "m", %x to 0 : tensor<2xf32>
    mtp.yield
  }
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  // expected-note @below {{the other end is here}}
  mtp.send "m", %x to 1 : tensor<2xf32>
  mtp.send "n", %x to 1 : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  // expected-error @below {{receives "n" where "m" is sent}}
  %n = mtp.receive "n" from 0 : tensor<2xf32>
  %m = mtp.receive "m" from 0 : tensor<2xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  mtp.yield
}
mtp.segment @b chunk 1 () {
  mtp.yield
}
// expected-error @below {{is of no stage, but the mesh has an axis of stages}}
mtp.update {
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  mtp.yield
}
mtp.update on 1 {
  // expected-error @below {{of stage 1 reads an accumulator to which no segment of the stage adds}}
  %g = mtp.accumulated "x" : tensor<2xf32>
}
}

// -----

// A tied gradient is not summed over its stages.
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  mtp.yield
}
mtp.update on 0 {
  // expected-error @below {{is held by 2 stages, over which it is not summed}}
  %g = mtp.accumulated "x" : tensor<2xf32>
  mtp.adamw "x", %g : tensor<2xf32>
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 3>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  mtp.yield
}
mtp.segment @c chunk 2 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "x" : tensor<2xf32>
  // expected-error @below {{sums "x" over other stages than hold it: 0, 2}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "x" : tensor<2xf32>
  mtp.adamw "x", %s : tensor<2xf32>
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "x" : tensor<2xf32>
  // expected-error @below {{sums "x" over other stages than hold it: 0}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "x" : tensor<2xf32>
  mtp.adamw "x", %s : tensor<2xf32>
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "x" : tensor<2xf32>
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "x" : tensor<2xf32>
  // expected-error @below {{sums "x" again}}
  %t = mtp.all_reduce %s over "pp" cause "x" : tensor<2xf32>
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  // expected-error @below {{is read on stage 1, which does not update it}}
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "x" : tensor<2xf32>
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "x" : tensor<2xf32>
  mtp.adamw "x", %s : tensor<2xf32>
}
}

// -----

// Two stages have their two sums in different orders.
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  %y = mtp.parameter "y" : tensor<2xf32>
  mtp.accumulate "y", %y : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  %y = mtp.parameter "y" : tensor<2xf32>
  mtp.accumulate "y", %y : tensor<2xf32>
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "x" : tensor<2xf32>
  // expected-note @below {{the corresponding sum of another stage is here}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "x" : tensor<2xf32>
  mtp.adamw "x", %s : tensor<2xf32>
  %h = mtp.accumulated "y" : tensor<2xf32>
  %t = mtp.all_reduce %h over "pp" among [0, 1] cause "y" : tensor<2xf32>
  mtp.adamw "y", %t : tensor<2xf32>
}
mtp.update on 1 {
  %h = mtp.accumulated "y" : tensor<2xf32>
  // expected-error @below {{is sum 0 of stage 1}}
  %t = mtp.all_reduce %h over "pp" among [0, 1] cause "y" : tensor<2xf32>
  mtp.adamw "y", %t : tensor<2xf32>
  %g = mtp.accumulated "x" : tensor<2xf32>
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "x" : tensor<2xf32>
  mtp.adamw "x", %s : tensor<2xf32>
}
}
