// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @maximum_of_another_shape () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  %m = mtp.parameter "m" : tensor<4x2xf32>
  // expected-error @below {{maximum has shape [4, 2], needs [2, 4]}}
  %z = mtp.vocab_sum_exp "sum_exp"(%l, %m) {classes = 50 : i64} : (tensor<2x4x50xf32>, tensor<4x2xf32>) -> tensor<2x4xf32>
  mtp.yield
}

// -----

mtp.segment @result_of_another_shape () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  %m = mtp.parameter "m" : tensor<2x4xf32>
  // expected-error @below {{result has shape [2], needs [2, 4]}}
  %z = mtp.vocab_sum_exp "sum_exp"(%l, %m) {classes = 50 : i64} : (tensor<2x4x50xf32>, tensor<2x4xf32>) -> tensor<2xf32>
  mtp.yield
}

// -----

mtp.segment @no_class () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  %m = mtp.parameter "m" : tensor<2x4xf32>
  // expected-error @below {{needs at least 1 class, got 0}}
  %z = mtp.vocab_sum_exp "sum_exp"(%l, %m) {classes = 0 : i64} : (tensor<2x4x50xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  mtp.yield
}
