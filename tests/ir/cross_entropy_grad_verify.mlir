// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @result_without_classes () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  %m = mtp.parameter "m" : tensor<2x4xf32>
  %s = mtp.parameter "s" : tensor<2x4xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x4xi32>
  %c = mtp.parameter "c" : tensor<f32>
  // expected-error @below {{result has shape [2, 4], needs [2, 4, 50]}}
  %d = mtp.cross_entropy_grad "loss.grad"(%l, %m, %s, %t, %c) {classes = 50 : i64} : (tensor<2x4x50xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<2x4xf32>
  mtp.yield
}

// -----

mtp.segment @maximum_of_another_shape () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  %m = mtp.parameter "m" : tensor<4x2xf32>
  %s = mtp.parameter "s" : tensor<2x4xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x4xi32>
  %c = mtp.parameter "c" : tensor<f32>
  // expected-error @below {{maximum has shape [4, 2], needs [2, 4]}}
  %d = mtp.cross_entropy_grad "loss.grad"(%l, %m, %s, %t, %c) {classes = 50 : i64} : (tensor<2x4x50xf32>, tensor<4x2xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<2x4x50xf32>
  mtp.yield
}

// -----

mtp.segment @sum_exp_of_another_shape () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  %m = mtp.parameter "m" : tensor<2x4xf32>
  %s = mtp.parameter "s" : tensor<8xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x4xi32>
  %c = mtp.parameter "c" : tensor<f32>
  // expected-error @below {{sum_exp has shape [8], needs [2, 4]}}
  %d = mtp.cross_entropy_grad "loss.grad"(%l, %m, %s, %t, %c) {classes = 50 : i64} : (tensor<2x4x50xf32>, tensor<2x4xf32>, tensor<8xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<2x4x50xf32>
  mtp.yield
}

// -----

mtp.segment @targets_of_another_shape () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  %m = mtp.parameter "m" : tensor<2x4xf32>
  %s = mtp.parameter "s" : tensor<2x4xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x5xi32>
  %c = mtp.parameter "c" : tensor<f32>
  // expected-error @below {{targets has shape [2, 5], needs [2, 4]}}
  %d = mtp.cross_entropy_grad "loss.grad"(%l, %m, %s, %t, %c) {classes = 50 : i64} : (tensor<2x4x50xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x5xi32>, tensor<f32>) -> tensor<2x4x50xf32>
  mtp.yield
}

// -----

mtp.segment @count_per_token () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  %m = mtp.parameter "m" : tensor<2x4xf32>
  %s = mtp.parameter "s" : tensor<2x4xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x4xi32>
  %c = mtp.parameter "c" : tensor<2x4xf32>
  // expected-error @below {{count has 2 dimensions, needs 0}}
  %d = mtp.cross_entropy_grad "loss.grad"(%l, %m, %s, %t, %c) {classes = 50 : i64} : (tensor<2x4x50xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<2x4xf32>) -> tensor<2x4x50xf32>
  mtp.yield
}

// -----

mtp.segment @no_class () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  %m = mtp.parameter "m" : tensor<2x4xf32>
  %s = mtp.parameter "s" : tensor<2x4xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x4xi32>
  %c = mtp.parameter "c" : tensor<f32>
  // expected-error @below {{needs at least 1 class, got 0}}
  %d = mtp.cross_entropy_grad "loss.grad"(%l, %m, %s, %t, %c) {classes = 0 : i64} : (tensor<2x4x50xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<2x4x50xf32>
  mtp.yield
}
