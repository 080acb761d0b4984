// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @targets_of_another_shape () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x5xi32>
  // expected-error @below {{targets has shape [2, 5], needs [2, 4]}}
  %p = mtp.vocab_pick "pick"(%l, %t) : (tensor<2x4x50xf32>, tensor<2x5xi32>) -> tensor<2x4xf32>
  mtp.yield
}

// -----

mtp.segment @result_of_another_shape () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x4xi32>
  // expected-error @below {{result has shape [2], needs [2, 4]}}
  %p = mtp.vocab_pick "pick"(%l, %t) : (tensor<2x4x50xf32>, tensor<2x4xi32>) -> tensor<2xf32>
  mtp.yield
}
