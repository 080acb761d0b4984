// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @query_of_two_dimensions () {
  %q = mtp.parameter "q" : tensor<4x16xf32>
  %k = mtp.parameter "k" : tensor<2x4x8xf32>
  %v = mtp.parameter "v" : tensor<2x4x8xf32>
  // expected-error @below {{query has 2 dimensions, needs 3}}
  %y, %lse = mtp.attention "core"(%q, %k, %v) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<4x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<4x16xf32>, tensor<2x4x4xf32>)
  mtp.yield
}

// -----

mtp.segment @key_of_two_dimensions () {
  %q = mtp.parameter "q" : tensor<2x4x16xf32>
  %k = mtp.parameter "k" : tensor<4x8xf32>
  %v = mtp.parameter "v" : tensor<4x8xf32>
  // expected-error @below {{key has 2 dimensions, needs 3}}
  %y, %lse = mtp.attention "core"(%q, %k, %v) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<2x4x16xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x4xf32>)
  mtp.yield
}

// -----

mtp.segment @value_of_another_type () {
  %q = mtp.parameter "q" : tensor<2x4x16xf32>
  %k = mtp.parameter "k" : tensor<2x4x8xf32>
  %v = mtp.parameter "v" : tensor<2x4x4xf32>
  // expected-error @below {{value has type 'tensor<2x4x4xf32>', needs 'tensor<2x4x8xf32>'}}
  %y, %lse = mtp.attention "core"(%q, %k, %v) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<2x4x4xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x4xf32>)
  mtp.yield
}

// -----

mtp.segment @other_samples () {
  %q = mtp.parameter "q" : tensor<2x4x16xf32>
  %k = mtp.parameter "k" : tensor<3x4x8xf32>
  %v = mtp.parameter "v" : tensor<3x4x8xf32>
  // expected-error @below {{query has 2 samples, key has 3}}
  %y, %lse = mtp.attention "core"(%q, %k, %v) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<2x4x16xf32>, tensor<3x4x8xf32>, tensor<3x4x8xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x4xf32>)
  mtp.yield
}

// -----

mtp.segment @head_dim_of_zero () {
  %q = mtp.parameter "q" : tensor<2x4x16xf32>
  %k = mtp.parameter "k" : tensor<2x4x8xf32>
  %v = mtp.parameter "v" : tensor<2x4x8xf32>
  // expected-error @below {{needs a head_dim of at least 1, got 0}}
  %y, %lse = mtp.attention "core"(%q, %k, %v) {causal = true, head_dim = 0 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x4xf32>)
  mtp.yield
}

// -----

mtp.segment @part_of_a_query_head () {
  %q = mtp.parameter "q" : tensor<2x4x18xf32>
  %k = mtp.parameter "k" : tensor<2x4x8xf32>
  %v = mtp.parameter "v" : tensor<2x4x8xf32>
  // expected-error @below {{query has 18 features, needs a multiple of head_dim, 4}}
  %y, %lse = mtp.attention "core"(%q, %k, %v) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<2x4x18xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x18xf32>, tensor<2x4x4xf32>)
  mtp.yield
}

// -----

mtp.segment @part_of_a_key_head () {
  %q = mtp.parameter "q" : tensor<2x4x16xf32>
  %k = mtp.parameter "k" : tensor<2x4x6xf32>
  %v = mtp.parameter "v" : tensor<2x4x6xf32>
  // expected-error @below {{key has 6 features, needs a multiple of head_dim, 4}}
  %y, %lse = mtp.attention "core"(%q, %k, %v) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<2x4x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x4xf32>)
  mtp.yield
}

// -----

mtp.segment @heads_that_do_not_share () {
  %q = mtp.parameter "q" : tensor<2x4x16xf32>
  %k = mtp.parameter "k" : tensor<2x4x12xf32>
  %v = mtp.parameter "v" : tensor<2x4x12xf32>
  // expected-error @below {{has 4 heads, needs a multiple of its 3 key/value heads}}
  %y, %lse = mtp.attention "core"(%q, %k, %v) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<2x4x16xf32>, tensor<2x4x12xf32>, tensor<2x4x12xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x4xf32>)
  mtp.yield
}

// -----

mtp.segment @result_of_another_type () {
  %q = mtp.parameter "q" : tensor<2x4x16xf32>
  %k = mtp.parameter "k" : tensor<2x4x8xf32>
  %v = mtp.parameter "v" : tensor<2x4x8xf32>
  // expected-error @below {{result has type 'tensor<2x4x8xf32>', needs 'tensor<2x4x16xf32>'}}
  %y, %lse = mtp.attention "core"(%q, %k, %v) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>)
  mtp.yield
}

// -----

mtp.segment @lse_of_features () {
  %q = mtp.parameter "q" : tensor<2x4x16xf32>
  %k = mtp.parameter "k" : tensor<2x4x8xf32>
  %v = mtp.parameter "v" : tensor<2x4x8xf32>
  // expected-error @below {{lse has shape [2, 4, 16], needs [2, 4, 4]}}
  %y, %lse = mtp.attention "core"(%q, %k, %v) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x16xf32>)
  mtp.yield
}

// -----

mtp.segment @nothing_is_kept () {
  %q = mtp.parameter "q" : tensor<2x4x16xf32>
  %k = mtp.parameter "k" : tensor<2x4x8xf32>
  %v = mtp.parameter "v" : tensor<2x4x8xf32>
  // expected-error @below {{needs a rate of at least 0 and below 1, got 1.000000e+00}}
  %y, %lse = mtp.attention "core"(%q, %k, %v) {causal = true, head_dim = 4 : i64, mask = "core", rate = 1.0 : f64, scale = 5.000000e-01 : f64} : (tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x4xf32>)
  mtp.yield
}
