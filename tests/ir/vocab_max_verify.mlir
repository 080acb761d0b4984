// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @logits_of_a_scalar () {
  %l = mtp.parameter "l" : tensor<f32>
  // expected-error @below {{logits has 0 dimensions, needs at least 1}}
  %m = mtp.vocab_max "max"(%l) {classes = 50 : i64} : (tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @result_with_classes () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  // expected-error @below {{result has shape [2, 4, 50], needs [2, 4]}}
  %m = mtp.vocab_max "max"(%l) {classes = 50 : i64} : (tensor<2x4x50xf32>) -> tensor<2x4x50xf32>
  mtp.yield
}

// -----

mtp.segment @no_class () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  // expected-error @below {{needs at least 1 class, got 0}}
  %m = mtp.vocab_max "max"(%l) {classes = 0 : i64} : (tensor<2x4x50xf32>) -> tensor<2x4xf32>
  mtp.yield
}
