// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @logits_of_two_dimensions () {
  %logits = mtp.parameter "logits" : tensor<4x6xf32>
  %count = mtp.input "count" dims [] : tensor<f32>
  // expected-error @below {{logits has 2 dimensions, needs 3}}
  %y = mtp.balance_loss_grad "l"(%logits, %count) {coefficient = 1.000000e-02 : f64, top_k = 2 : i64} : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  mtp.yield
}

// -----

mtp.segment @no_expert_chosen () {
  %logits = mtp.parameter "logits" : tensor<2x4x6xf32>
  %count = mtp.input "count" dims [] : tensor<f32>
  // expected-error @below {{needs a top_k from 1 to its 6 experts, got 0}}
  %y = mtp.balance_loss_grad "l"(%logits, %count) {coefficient = 1.000000e-02 : f64, top_k = 0 : i64} : (tensor<2x4x6xf32>, tensor<f32>) -> tensor<2x4x6xf32>
  mtp.yield
}

// -----

mtp.segment @more_than_there_are () {
  %logits = mtp.parameter "logits" : tensor<2x4x6xf32>
  %count = mtp.input "count" dims [] : tensor<f32>
  // expected-error @below {{needs a top_k from 1 to its 6 experts, got 7}}
  %y = mtp.balance_loss_grad "l"(%logits, %count) {coefficient = 1.000000e-02 : f64, top_k = 7 : i64} : (tensor<2x4x6xf32>, tensor<f32>) -> tensor<2x4x6xf32>
  mtp.yield
}

// -----

mtp.segment @count_of_samples () {
  %logits = mtp.parameter "logits" : tensor<2x4x6xf32>
  %count = mtp.parameter "count" : tensor<2xf32>
  // expected-error @below {{count has 1 dimensions, needs 0}}
  %y = mtp.balance_loss_grad "l"(%logits, %count) {coefficient = 1.000000e-02 : f64, top_k = 2 : i64} : (tensor<2x4x6xf32>, tensor<2xf32>) -> tensor<2x4x6xf32>
  mtp.yield
}

// -----

mtp.segment @gradient_of_another_type () {
  %logits = mtp.parameter "logits" : tensor<2x4x6xf32>
  %count = mtp.input "count" dims [] : tensor<f32>
  // expected-error @below {{result has type 'tensor<2x4x6xf64>', needs 'tensor<2x4x6xf32>'}}
  %y = mtp.balance_loss_grad "l"(%logits, %count) {coefficient = 1.000000e-02 : f64, top_k = 2 : i64} : (tensor<2x4x6xf32>, tensor<f32>) -> tensor<2x4x6xf64>
  mtp.yield
}
