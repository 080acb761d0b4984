// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @input_is_a_scalar () {
  %x = mtp.parameter "x" : tensor<f32>
  %g = mtp.parameter "g" : tensor<8xf32>
  %b = mtp.parameter "b" : tensor<8xf32>
  // expected-error @below {{input has 0 dimensions, needs at least 1}}
  %y = mtp.layer_norm "ln"(%x, %g, %b) : (tensor<f32>, tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @gamma_of_another_size () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<4xf32>
  %b = mtp.parameter "b" : tensor<8xf32>
  // expected-error @below {{gamma has shape [4], needs [8]}}
  %y = mtp.layer_norm "ln"(%x, %g, %b) : (tensor<2x4x8xf32>, tensor<4xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @beta_of_two_dimensions () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<8xf32>
  %b = mtp.parameter "b" : tensor<1x8xf32>
  // expected-error @below {{beta has shape [1, 8], needs [8]}}
  %y = mtp.layer_norm "ln"(%x, %g, %b) : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<1x8xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @result_of_another_type () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<8xf32>
  %b = mtp.parameter "b" : tensor<8xf32>
  // expected-error @below {{result has type 'tensor<2x4x9xf32>', needs 'tensor<2x4x8xf32>'}}
  %y = mtp.layer_norm "ln"(%x, %g, %b) : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x9xf32>
  mtp.yield
}
