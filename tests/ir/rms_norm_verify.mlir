// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @gamma_of_another_size () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<4xf32>
  // expected-error @below {{gamma has shape [4], needs [8]}}
  %y = mtp.rms_norm "ln"(%x, %g) : (tensor<2x4x8xf32>, tensor<4xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @result_of_another_type () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<8xf32>
  // expected-error @below {{result has type 'tensor<2x4x9xf32>', needs 'tensor<2x4x8xf32>'}}
  %y = mtp.rms_norm "ln"(%x, %g) : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x9xf32>
  mtp.yield
}

// -----

mtp.segment @heads_that_do_not_fit () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<3xf32>
  // expected-error @below {{input has 8 features, needs a multiple of head_dim, 3}}
  %y = mtp.rms_norm "ln"(%x, %g) {head_dim = 3 : i64} : (tensor<2x4x8xf32>, tensor<3xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @gamma_of_all_heads () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<8xf32>
  // expected-error @below {{gamma has shape [8], needs [4]}}
  %y = mtp.rms_norm "ln"(%x, %g) {head_dim = 4 : i64} : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}
