// RUN: mtplan-opt %s --split-input-file --verify-diagnostics --mtp-split-stages
// RUN: not mtplan-opt %s --split-input-file --mtp-split-stages

// expected-error @below {{is not partitioned: split it over stages after that}}
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.stages = 2 : i64} {
}

// -----

// expected-error @below {{cannot be split over 1 stages on mesh #mtp.mesh<"dp" = 2>}}
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned, mtp.stages = 1 : i64} {
}

// -----

// expected-error @below {{cannot be split over 2 stages on mesh #mtp.mesh<"pp" = 2>}}
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned, mtp.stages = 2 : i64} {
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned, mtp.stages = 2 : i64} {
// expected-error @below {{has no chunk, but the module has 2 stages}}
mtp.segment @a () {
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned, mtp.stages = 2 : i64} {
mtp.segment @a chunk 0 () {
  mtp.yield
}
// expected-error @below {{is of chunk 2, needs 0 or 1}}
mtp.segment @b chunk 2 () {
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned, mtp.stages = 2 : i64} {
mtp.segment @a chunk 0 () {
  mtp.yield
}
mtp.segment @b chunk 1 () {
  mtp.yield
}
// expected-error @below {{is in the last of 3 chunks, which is not a multiple of the 2 stages}}
mtp.segment @c chunk 2 () {
  mtp.yield
}
}

// -----

// One layer of a label is on two stages.
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned, mtp.stages = 2 : i64} {
mtp.segment @a repeat 2 chunk 0 () {
  %x = mtp.parameter "h.*.x" : tensor<2xf32>
  mtp.accumulate "h.*.s", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b repeat 2 first 1 chunk 1 () {
  %x = mtp.parameter "h.*.x" : tensor<2xf32>
  mtp.accumulate "h.*.s", %x : tensor<2xf32>
  mtp.yield
}
mtp.update {
  // expected-error @below {{reads copy 1 of "h.*.s", which stages 0 and 1 share: name what is shared without a '*'}}
  %s = mtp.accumulated "h.*.s" : tensor<2xf32>
}
}

// -----

// An operator of the update reads accumulators of two stages.
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned, mtp.stages = 2 : i64} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "t", %x : tensor<2xf32>
  mtp.yield
}
mtp.update {
  %s = mtp.accumulated "s" : tensor<2xf32>
  %t = mtp.accumulated "t" : tensor<2xf32>
  // expected-error @below {{reads values that no single stage has}}
  %u = mtp.add "u" (%s, %t) : tensor<2xf32>
  mtp.result "u", %u : tensor<2xf32>
}
}
