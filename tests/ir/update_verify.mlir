// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

// expected-note @below {{the first is here}}
mtp.update {
  %loss = mtp.accumulated "loss" : tensor<f32>
}
// expected-error @below {{is the second of its module, which may have 1}}
mtp.update {
  %loss = mtp.accumulated "loss" : tensor<f32>
}

// -----

// expected-error @below {{expects parent op 'mtp.update'}}
%loss = mtp.accumulated "loss" : tensor<f32>
