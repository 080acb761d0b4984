// RUN: mtplan-opt --mtp-verify-streams --split-input-file --verify-diagnostics %s
// RUN: not mtplan-opt --mtp-verify-streams --split-input-file %s

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] {mtp.stream = "compute"} : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @none (%x : tensor<4x4xf32>) {
  // expected-error @below {{has no stream}}
  %y = mtp.scale "s"(%x) by 2.0 : tensor<4x4xf32>
  mtp.yield %y : tensor<4x4xf32>
}

// -----

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] {mtp.stream = "compute"} : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @unknown (%x : tensor<4x4xf32>) {
  // expected-error @below {{is on stream "river", which is unknown}}
  %y = mtp.scale "s"(%x) by 2.0 {mtp.stream = "river"} : tensor<4x4xf32>
  mtp.yield %y : tensor<4x4xf32>
}

// -----

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] {mtp.stream = "compute"} : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @torn (%x : tensor<4x4xf32>) {
  %y = mtp.dropout "d"(%x) {rate = 0.1 : f64, mask = "m", mtp.stream = "compute"} : tensor<4x4xf32>
  // expected-error @below {{is on stream "data", but fused with an operation on "compute"}}
  %z = mtp.add "a"(%y, %x) {mtp.fused = "epilogue", mtp.stream = "data"} : tensor<4x4xf32>
  mtp.yield %z : tensor<4x4xf32>
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 2, "cp" = 2>, mtp.partitioned} {
mtp.segment @h () {
  %x = mtp.input "x" dims ["batch", "other"] {mtp.stream = "compute"} : tensor<4x4xf32>
  // expected-note @below {{the launch begins here}}
  %y = mtp.all_reduce %x over "tp" cause "y" {mtp.batch = 0 : i64, mtp.stream = "tensor"} : tensor<4x4xf32>
  // expected-error @below {{has another 'mtp.stream' than the first in launch 0}}
  %z = mtp.all_reduce %x over "tp" cause "z" {mtp.batch = 0 : i64, mtp.stream = "data"} : tensor<4x4xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 2, "cp" = 2>, mtp.partitioned} {
mtp.segment @h () {
  %x = mtp.input "x" dims ["batch", "other"] {mtp.stream = "compute"} : tensor<4x4xf32>
  // expected-note @below {{the launch begins here}}
  %y = mtp.all_reduce %x over "tp" cause "y" {mtp.batch = 0 : i64, mtp.stream = "tensor"} : tensor<4x4xf32>
  // expected-error @below {{has another 'axis' than the first in launch 0}}
  %z = mtp.all_reduce %x over "cp" cause "z" {mtp.batch = 0 : i64, mtp.stream = "tensor"} : tensor<4x4xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 2, "cp" = 2>, mtp.partitioned} {
mtp.segment @h () {
  %x = mtp.input "x" dims ["batch", "other"] {mtp.stream = "compute"} : tensor<4x4xf32>
  // expected-note @below {{the launch begins here}}
  %y = mtp.all_reduce %x over "tp" cause "y" {mtp.batch = 0 : i64, mtp.stream = "tensor"} : tensor<4x4xf32>
  // expected-error @below {{reads the result of another operation in launch 0}}
  %z = mtp.all_reduce %y over "tp" cause "z" {mtp.batch = 0 : i64, mtp.stream = "tensor"} : tensor<4x4xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 2, "cp" = 2>, mtp.partitioned} {
mtp.segment @h () {
  %x = mtp.input "x" dims ["batch", "other"] {mtp.stream = "compute"} : tensor<4x4xf32>
  %y = mtp.all_reduce %x over "tp" cause "y" {mtp.batch = 0 : i64, mtp.stream = "tensor"} : tensor<4x4xf32>
  // expected-error @below {{is in the middle of launch 0}}
  %w = mtp.scale "s"(%x) by 2.0 {mtp.stream = "compute"} : tensor<4x4xf32>
  %z = mtp.all_reduce %x over "tp" cause "z" {mtp.batch = 0 : i64, mtp.stream = "tensor"} : tensor<4x4xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 2, "cp" = 2>, mtp.partitioned} {
mtp.segment @h () {
  %x = mtp.input "x" dims ["batch", "other"] {mtp.stream = "compute"} : tensor<4x4xf32>
  // expected-note @below {{the launch begins here}}
  // expected-error @below {{cannot be grouped in launch 0}}
  %y = mtp.all_to_all %x over "tp" split 0 join 1 cause "y" {mtp.batch = 0 : i64, mtp.stream = "tensor"} : (tensor<4x4xf32>) -> tensor<2x8xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 2, "cp" = 2>, mtp.partitioned} {
mtp.segment @h () {
  %w = mtp.parameter "w" : tensor<4x4xf32>
  mtp.backward () {
    mtp.accumulate "w", %w {mtp.stream = "compute"} : tensor<4x4xf32>
    mtp.yield
  }
  mtp.yield
}
mtp.update {
  %g = mtp.accumulated "w" {mtp.stream = "compute"} : tensor<4x4xf32>
  // expected-error @below {{overlaps the backward of "other", which does not make its gradient}}
  %s = mtp.all_reduce %g over "dp" cause "w" {mtp.overlapped = "other", mtp.stream = "data"} : tensor<4x4xf32>
  mtp.adamw "w", %s {mtp.stream = "compute"} : tensor<4x4xf32>
}
}

// -----

mtp.segment @h () {
  %x = mtp.input "x" dims ["batch", "other"] {mtp.stream = "compute"} : tensor<4x4xf32>
  // expected-error @below {{is no reduction that can overlap a backward}}
  %y = mtp.scale "s"(%x) by 2.0 {mtp.overlapped = "h", mtp.stream = "compute"} : tensor<4x4xf32>
  mtp.yield
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned} {
mtp.segment @h () {
  %x = mtp.input "x" dims ["batch", "other"] {mtp.stream = "compute"} : tensor<2x4xf32>
  // expected-error @below {{is no gather of a parameter that can run ahead}}
  %y = mtp.all_gather %x over "dp" dim 0 cause "x" {mtp.ahead, mtp.of_block, mtp.stream = "data"} : (tensor<2x4xf32>) -> tensor<4x4xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned} {
mtp.segment @h () {
  %p = mtp.parameter "w" : tensor<2x4xf32>
  // expected-error @below {{runs ahead, but another program reads the result}}
  %w = mtp.all_gather %p over "dp" dim 0 cause "w" {mtp.ahead, mtp.of_block, mtp.stream = "data"} : (tensor<2x4xf32>) -> tensor<4x4xf32>
  mtp.backward () {
    %y = mtp.scale "s"(%w) by 2.0 {mtp.stream = "compute"} : tensor<4x4xf32>
    mtp.yield
  }
  mtp.yield
}
}
