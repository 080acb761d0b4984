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
