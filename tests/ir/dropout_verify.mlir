// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @negative_rate () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{needs a rate of at least 0 and below 1, got -1.000000e-01}}
  %y = mtp.dropout "drop"(%x) {mask = "drop", rate = -0.1 : f64} : tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @nothing_is_kept () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{needs a rate of at least 0 and below 1, got 1.000000e+00}}
  %y = mtp.dropout "drop"(%x) {mask = "drop", rate = 1.0 : f64} : tensor<2x4x8xf32>
  mtp.yield
}
