// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @unknown_init () {
  // expected-error @below {{needs init normal, residual, ones or zeros, got "uniform"}}
  %w = mtp.parameter "w" {init = "uniform"} : tensor<4xf32>
  mtp.yield
}

// -----

mtp.segment @first () {
  // expected-note @below {{it is first read here}}
  %w = mtp.parameter "w" : tensor<4xf32>
  mtp.yield
}
mtp.segment @tied_with_another_type () {
  // expected-error @below {{parameter "w" has type 'tensor<4xbf16>', but elsewhere 'tensor<4xf32>'}}
  %w = mtp.parameter "w" : tensor<4xbf16>
  mtp.yield
}

// -----

// Copies of different segments may be stored differently.
module attributes {mtp.partitioned} {
mtp.segment @first () {
  %w = mtp.parameter "h.*.w" : tensor<4xf32>
  mtp.yield
}
mtp.segment @second first 1 () {
  %w = mtp.parameter "h.*.w" : tensor<2xf32>
  mtp.yield
}
}
