// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @not_a_suffix () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{result has shape [4], needs the last dimensions of [2, 4, 8]}}
  %y = mtp.sum "db"(%x) : (tensor<2x4x8xf32>) -> tensor<4xf32>
  mtp.yield
}

// -----

mtp.segment @more_dimensions () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{result has shape [1, 2, 4, 8], needs the last dimensions of [2, 4, 8]}}
  %y = mtp.sum "db"(%x) : (tensor<2x4x8xf32>) -> tensor<1x2x4x8xf32>
  mtp.yield
}
