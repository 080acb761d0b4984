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

// Layers of different segments may have different layouts.
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

// -----

mtp.segment @more_than_there_is () {
  // expected-error @below {{dimension 1 has an extent of 4, but 5 without padding}}
  %w = mtp.parameter "w" {unpadded = array<i64: 4, 5>} : tensor<4x4xf32>
  mtp.yield
}

// -----

mtp.segment @nothing_but_padding () {
  // expected-error @below {{dimension 0 has an extent of 4, but 0 without padding}}
  %w = mtp.parameter "w" {unpadded = array<i64: 0, 4>} : tensor<4x4xf32>
  mtp.yield
}

// -----

mtp.segment @one_dimension_of_two () {
  // expected-error @below {{has 1 entries of unpadded, needs one for each of 2 dimensions}}
  %w = mtp.parameter "w" {unpadded = array<i64: 4>} : tensor<4x4xf32>
  mtp.yield
}

// -----

mtp.segment @first () {
  // expected-note @below {{it is first read here}}
  %w = mtp.parameter "w" {unpadded = array<i64: 3>} : tensor<4xf32>
  mtp.yield
}
mtp.segment @tied_without_its_padding () {
  // expected-error @below {{parameter "w" has another unpadded than elsewhere}}
  %w = mtp.parameter "w" : tensor<4xf32>
  mtp.yield
}

// -----

// The error counts the extent over all ranks of the partitioned module.
module attributes {mtp.partitioned, mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 2>} {
mtp.segment @pieces () {
  %v = mtp.parameter "v" {layout = #mtp.layout<[["tp", "dp"], []]>, unpadded = array<i64: 15, 3>} : tensor<4x4xf32>
  // expected-error @below {{dimension 0 has an extent of 8, but 9 without padding}}
  %w = mtp.parameter "w" {layout = #mtp.layout<[["tp"], []]>, unpadded = array<i64: 9, 4>} : tensor<4x4xf32>
  mtp.yield
}
}
