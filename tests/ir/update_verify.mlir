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

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>} {
mtp.update on 0 {
}
// expected-note @below {{the first is here}}
mtp.update on 1 {
}
// expected-error @below {{is the second of its stage, which may have 1}}
mtp.update on 1 {
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>} {
// expected-error @below {{on 2 is none of the 2 stages}}
mtp.update on 2 {
}
}

// -----

// expected-error @below {{needs a mesh with an axis "pp", which the module does not have}}
mtp.update on 0 {
}
