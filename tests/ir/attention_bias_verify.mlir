// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @no_distance () {
  %q = mtp.parameter "q" : tensor<2x4x8xf32>
  %n = mtp.parameter "n" : tensor<8x2xf32>
  // expected-error @below {{has a bias, but no max_distance}}
  %y, %lse = mtp.attention "core"(%q, %q, %q, %n) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.0 : f64, scale = 0.5 : f64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<8x2xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x2xf32>)
  mtp.yield
}

// -----

mtp.segment @no_bias () {
  %q = mtp.parameter "q" : tensor<2x4x8xf32>
  // expected-error @below {{has a max_distance, but no bias}}
  %y, %lse = mtp.attention "core"(%q, %q, %q) {causal = true, head_dim = 4 : i64, mask = "core", max_distance = 16 : i64, rate = 0.0 : f64, scale = 0.5 : f64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x2xf32>)
  mtp.yield
}

// -----

mtp.segment @too_few_rows () {
  %q = mtp.parameter "q" : tensor<2x4x8xf32>
  %n = mtp.parameter "n" : tensor<3x2xf32>
  // expected-error @below {{bias has 3 rows, needs at least 4}}
  %y, %lse = mtp.attention "core"(%q, %q, %q, %n) {causal = true, head_dim = 4 : i64, mask = "core", max_distance = 16 : i64, rate = 0.0 : f64, scale = 0.5 : f64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<3x2xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x2xf32>)
  mtp.yield
}

// -----

mtp.segment @another_number_of_heads () {
  %q = mtp.parameter "q" : tensor<2x4x8xf32>
  %n = mtp.parameter "n" : tensor<8x3xf32>
  // expected-error @below {{bias has 3 columns, needs one for each of 2 heads}}
  %y, %lse = mtp.attention "core"(%q, %q, %q, %n) {causal = true, head_dim = 4 : i64, mask = "core", max_distance = 16 : i64, rate = 0.0 : f64, scale = 0.5 : f64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<8x3xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x2xf32>)
  mtp.yield
}

// -----

mtp.segment @gradient_without_bias () {
  %q = mtp.parameter "q" : tensor<2x4x8xf32>
  %lse = mtp.parameter "lse" : tensor<2x4x2xf32>
  // expected-error @below {{makes the gradient of a bias, but has none}}
  %dq, %dk, %dv, %dn = mtp.attention_grad "grad"(%q, %q, %q, %q, %lse, %q) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.0 : f64, scale = 0.5 : f64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x2xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<8x2xf32>)
  mtp.yield
}
