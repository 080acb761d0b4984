// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @input_of_two_dimensions () {
  %x = mtp.parameter "x" : tensor<4x8xf32>
  // expected-error @below {{input has 2 dimensions, needs 3}}
  %y = mtp.rope "rope"(%x) {head_dim = 4 : i64, rotary_dim = 4 : i64, theta = 1.000000e+04 : f64} : tensor<4x8xf32>
  mtp.yield
}

// -----

mtp.segment @head_dim_of_zero () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{needs a head_dim of at least 1, got 0}}
  %y = mtp.rope "rope"(%x) {head_dim = 0 : i64, rotary_dim = 4 : i64, theta = 1.000000e+04 : f64} : tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @part_of_a_head () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{input has 8 features, needs a multiple of head_dim, 3}}
  %y = mtp.rope "rope"(%x) {head_dim = 3 : i64, rotary_dim = 2 : i64, theta = 1.000000e+04 : f64} : tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @odd_rotary_dim () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{needs an even rotary_dim from 2 to head_dim, 4, got 3}}
  %y = mtp.rope "rope"(%x) {head_dim = 4 : i64, rotary_dim = 3 : i64, theta = 1.000000e+04 : f64} : tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @rotary_dim_of_zero () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{needs an even rotary_dim from 2 to head_dim, 4, got 0}}
  %y = mtp.rope "rope"(%x) {head_dim = 4 : i64, rotary_dim = 0 : i64, theta = 1.000000e+04 : f64} : tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @rotary_dim_beyond_the_head () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{needs an even rotary_dim from 2 to head_dim, 4, got 6}}
  %y = mtp.rope "rope"(%x) {head_dim = 4 : i64, rotary_dim = 6 : i64, theta = 1.000000e+04 : f64} : tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @theta_of_zero () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{needs a theta above 0, got 0.000000e+00}}
  %y = mtp.rope "rope"(%x) {head_dim = 4 : i64, rotary_dim = 4 : i64, theta = 0.0 : f64} : tensor<2x4x8xf32>
  mtp.yield
}
