// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @sum_exp_of_another_shape () {
  %m = mtp.parameter "m" : tensor<2x4xf32>
  %s = mtp.parameter "s" : tensor<4x2xf32>
  %p = mtp.parameter "p" : tensor<2x4xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x4xi32>
  %c = mtp.parameter "c" : tensor<f32>
  // expected-error @below {{sum_exp has shape [4, 2], needs [2, 4]}}
  %loss = mtp.token_loss "loss"(%m, %s, %p, %t, %c) : (tensor<2x4xf32>, tensor<4x2xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @picked_of_another_shape () {
  %m = mtp.parameter "m" : tensor<2x4xf32>
  %s = mtp.parameter "s" : tensor<2x4xf32>
  %p = mtp.parameter "p" : tensor<8xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x4xi32>
  %c = mtp.parameter "c" : tensor<f32>
  // expected-error @below {{picked has shape [8], needs [2, 4]}}
  %loss = mtp.token_loss "loss"(%m, %s, %p, %t, %c) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<8xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @targets_of_another_shape () {
  %m = mtp.parameter "m" : tensor<2x4xf32>
  %s = mtp.parameter "s" : tensor<2x4xf32>
  %p = mtp.parameter "p" : tensor<2x4xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x5xi32>
  %c = mtp.parameter "c" : tensor<f32>
  // expected-error @below {{targets has shape [2, 5], needs [2, 4]}}
  %loss = mtp.token_loss "loss"(%m, %s, %p, %t, %c) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x5xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @count_per_token () {
  %m = mtp.parameter "m" : tensor<2x4xf32>
  %s = mtp.parameter "s" : tensor<2x4xf32>
  %p = mtp.parameter "p" : tensor<2x4xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x4xi32>
  %c = mtp.parameter "c" : tensor<2x4xf32>
  // expected-error @below {{count has 2 dimensions, needs 0}}
  %loss = mtp.token_loss "loss"(%m, %s, %p, %t, %c) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<2x4xf32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @result_per_token () {
  %m = mtp.parameter "m" : tensor<2x4xf32>
  %s = mtp.parameter "s" : tensor<2x4xf32>
  %p = mtp.parameter "p" : tensor<2x4xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x4xi32>
  %c = mtp.parameter "c" : tensor<f32>
  // expected-error @below {{result has 2 dimensions, needs 0}}
  %loss = mtp.token_loss "loss"(%m, %s, %p, %t, %c) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<2x4xf32>
  mtp.yield
}
