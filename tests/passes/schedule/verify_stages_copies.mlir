// RUN: mtplan-opt %s --split-input-file --verify-diagnostics --mtp-verify-stages
// RUN: not mtplan-opt %s --split-input-file --mtp-verify-stages

// The update has only the first of the two layers of the label.
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @h repeat 2 chunk 0 () {
  // expected-error @below {{is read on stage 0, which does not update copy 1 of it}}
  %w = mtp.parameter "h.*.w" : tensor<2xf32>
  mtp.accumulate "h.*.w", %w : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "h.*.w" {copies = array<i64: 0, 1>} : tensor<2xf32>
  mtp.adamw "h.*.w", %g {copies = array<i64: 0, 1>} : tensor<2xf32>
}
}

// -----

// A stage has two chunks, whose layers are adjacent and updated together.
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @h repeat 2 chunk 0 () {
  %w = mtp.parameter "h.*.w" : tensor<2xf32>
  mtp.accumulate "h.*.w", %w : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  mtp.yield
}
mtp.segment @h_2 repeat 2 first 2 chunk 2 () {
  // expected-error @below {{is read on stage 0, which updates 2 times copy 2 of it}}
  %w = mtp.parameter "h.*.w" : tensor<2xf32>
  mtp.accumulate "h.*.w", %w : tensor<2xf32>
  mtp.yield
}
mtp.segment @d chunk 3 () {
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "h.*.w" {copies = array<i64: 0, 3>} : tensor<2xf32>
  mtp.adamw "h.*.w", %g {copies = array<i64: 0, 3>} : tensor<2xf32>
  %h = mtp.accumulated "h.*.w" {copies = array<i64: 2, 2>} : tensor<2xf32>
  mtp.adamw "h.*.w", %h {copies = array<i64: 2, 2>} : tensor<2xf32>
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @h repeat 2 chunk 0 () {
  %w = mtp.parameter "h.*.w" : tensor<2xf32>
  mtp.accumulate "h.*.w", %w : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  mtp.yield
}
mtp.update on 0 {
  // expected-note @below {{which come from here}}
  %g = mtp.accumulated "h.*.w" {copies = array<i64: 0, 1>} : tensor<2xf32>
  // expected-error @below {{updates 2 copies from 0 on of "h.*.w" with 1 copies from 0 on}}
  mtp.adamw "h.*.w", %g {copies = array<i64: 0, 2>} : tensor<2xf32>
}
}

// -----

// A label without a layer number has no ranges: both stages have all of "x".
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a repeat 2 chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b repeat 2 first 2 chunk 1 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  mtp.yield
}
mtp.update on 0 {
  // expected-error @below {{is held by 2 stages, over which it is not summed}}
  %g = mtp.accumulated "x" {copies = array<i64: 0, 2>} : tensor<2xf32>
  mtp.adamw "x", %g {copies = array<i64: 0, 2>} : tensor<2xf32>
}
mtp.update on 1 {
  %g = mtp.accumulated "x" {copies = array<i64: 2, 2>} : tensor<2xf32>
  mtp.adamw "x", %g {copies = array<i64: 2, 2>} : tensor<2xf32>
}
}

// -----

// Both parameters are tied, and one stage swaps their gradients.
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
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "x" : tensor<2xf32>
  mtp.adamw "x", %s : tensor<2xf32>
  %h = mtp.accumulated "y" : tensor<2xf32>
  %t = mtp.all_reduce %h over "pp" among [0, 1] cause "y" : tensor<2xf32>
  mtp.adamw "y", %t : tensor<2xf32>
}
mtp.update on 1 {
  %g = mtp.accumulated "x" : tensor<2xf32>
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "x" : tensor<2xf32>
  // expected-note @below {{which come from here}}
  %h = mtp.accumulated "y" : tensor<2xf32>
  %t = mtp.all_reduce %h over "pp" among [0, 1] cause "y" : tensor<2xf32>
  // expected-error @below {{updates "x" with the value of "y"}}
  mtp.adamw "x", %t : tensor<2xf32>
  mtp.adamw "y", %s : tensor<2xf32>
}
}

// -----

// An updated shard that is not stored is no update.
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2, "dp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  // expected-error @below {{is read on stage 0, which does not update it}}
  %x = mtp.parameter "x" : tensor<4xf32>
  mtp.accumulate "x", %x : tensor<4xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "x" : tensor<4xf32>
  %p = mtp.reduce_scatter %g over "dp" dim 0 cause "x" : (tensor<4xf32>) -> tensor<2xf32>
  %u = mtp.adamw "x", %p {layout = #mtp.layout<[["dp"]]>} : tensor<2xf32> -> tensor<2xf32>
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2, "dp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<4xf32>
  mtp.accumulate "x", %x : tensor<4xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "x" : tensor<4xf32>
  %p = mtp.reduce_scatter %g over "dp" dim 0 cause "x" : (tensor<4xf32>) -> tensor<2xf32>
  // expected-note @below {{which come from here}}
  %u = mtp.adamw "x", %p {layout = #mtp.layout<[["dp"]]>} : tensor<2xf32> -> tensor<2xf32>
  %w = mtp.all_gather %u over "dp" dim 0 cause "x" : (tensor<2xf32>) -> tensor<4xf32>
  // expected-error @below {{updates "y" with the value of "x"}}
  mtp.store "y", %w : tensor<4xf32>
}
}
