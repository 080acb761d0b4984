// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @too_few_dims () {
  // expected-error @below {{has 1 entries of dims, needs one for each of 2 dimensions}}
  %ids = mtp.input "ids" dims ["batch"] : tensor<2x4xi32>
  mtp.yield
}

// -----

mtp.segment @unknown_dim () {
  // expected-error @below {{needs dims of batch, sequence or other, got "time"}}
  %ids = mtp.input "ids" dims ["batch", "time"] : tensor<2x4xi32>
  mtp.yield
}
