// RUN: mtplan-opt --mtp-verify-fused --split-input-file --verify-diagnostics %s
// RUN: not mtplan-opt --mtp-verify-fused --split-input-file %s

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @kind (%x : tensor<4x4xf32>) {
  // expected-error @below {{is fused as "beside", which is unknown}}
  %y = mtp.scale "s"(%x) by 2.0 {mtp.fused = "beside"} : tensor<4x4xf32>
  mtp.yield %y : tensor<4x4xf32>
}

// -----

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @first (%x : tensor<4x4xf32>) {
  // expected-error @below {{is not an epilogue of the operation before it}}
  %y = mtp.add "a"(%x, %x) {mtp.fused = "epilogue"} : tensor<4x4xf32>
  mtp.yield %y : tensor<4x4xf32>
}

// -----

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @apart (%x : tensor<4x4xf32>) {
  %y = mtp.dropout "d"(%x) {rate = 0.1 : f64, mask = "m"} : tensor<4x4xf32>
  %s = mtp.scale "s"(%x) by 2.0 : tensor<4x4xf32>
  // expected-error @below {{is not an epilogue of the operation before it}}
  %z = mtp.add "a"(%y, %x) {mtp.fused = "epilogue"} : tensor<4x4xf32>
  mtp.yield %z : tensor<4x4xf32>
}

// -----

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<2x6xf32>
  %dy = mtp.input "dy" dims ["batch", "other"] : tensor<2x4xf32>
  mtp.yield %x, %dy : tensor<2x6xf32>, tensor<2x4xf32>
}
mtp.segment @other (%x : tensor<2x6xf32>, %dy : tensor<2x4xf32>) {
  %dw = mtp.einsum "fc.dw" "bi,bo->io"(%x, %dy) : (tensor<2x6xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  // expected-error @below {{is no bias's gradient of a product before it}}
  %db = mtp.sum "fc.db"(%x) {mtp.fused = "bias_gradient"} : (tensor<2x6xf32>) -> tensor<6xf32>
  mtp.yield %x, %dy : tensor<2x6xf32>, tensor<2x4xf32>
}

// -----

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @alone (%x : tensor<4x4xf32>) {
  %w = mtp.parameter "w" : tensor<4x4xf32>
  // expected-error @below {{is the only product of batch 3}}
  %y = mtp.einsum "y" "bi,io->bo"(%x, %w) {mtp.batch = 3 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  mtp.yield %y : tensor<4x4xf32>
}

// -----

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @unlike (%x : tensor<4x4xf32>) {
  %w = mtp.parameter "w" : tensor<4x4xf32>
  %v = mtp.parameter "v" : tensor<4x8xf32>
  // expected-note @below {{the batch begins here}}
  %y = mtp.einsum "y" "bi,io->bo"(%x, %w) {mtp.batch = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error @below {{computes otherwise than the first of batch 0}}
  %z = mtp.einsum "z" "bi,io->bo"(%x, %v) {mtp.batch = 0 : i64} : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  mtp.yield %y : tensor<4x4xf32>
}

// -----

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @unshared (%x : tensor<4x4xf32>) {
  %w = mtp.parameter "w" : tensor<4x4xf32>
  // expected-note @below {{the batch begins here}}
  %y = mtp.einsum "y" "bi,io->bo"(%x, %w) {mtp.batch = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error @below {{does not share one operand with the others of batch 0}}
  %z = mtp.einsum "z" "bi,io->bo"(%x, %w) {mtp.batch = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  mtp.yield %y : tensor<4x4xf32>
}

// -----

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @dependent (%x : tensor<4x4xf32>) {
  %w = mtp.parameter "w" : tensor<4x4xf32>
  // expected-note @below {{the batch begins here}}
  %y = mtp.einsum "y" "bi,io->bo"(%x, %w) {mtp.batch = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error @below {{reads the result of another product of batch 0}}
  %z = mtp.einsum "z" "bi,io->bo"(%x, %y) {mtp.batch = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  mtp.yield %z : tensor<4x4xf32>
}
