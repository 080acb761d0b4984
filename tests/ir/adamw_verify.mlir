// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.update {
  %g = mtp.accumulated "w" : tensor<4xf32>
  // expected-error @below {{makes 'tensor<2xf32>' from a gradient 'tensor<4xf32>'}}
  %w = mtp.adamw "w", %g : tensor<4xf32> -> tensor<2xf32>
}

// -----

mtp.update {
  %g = mtp.accumulated "w" : tensor<4xf32>
  // expected-error @below {{updates in place, but has a layout of its own}}
  mtp.adamw "w", %g {layout = #mtp.layout<[["dp"]]>} : tensor<4xf32>
}

// -----

mtp.segment @s () {
  %w = mtp.parameter "w" : tensor<4xf32>
  // expected-error @below {{expects parent op 'mtp.update'}}
  mtp.store "w", %w : tensor<4xf32>
  mtp.yield
}
