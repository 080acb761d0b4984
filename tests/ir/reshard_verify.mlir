// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @source_of_two_entries () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{source has 2 entries, needs one for each of 3 dimensions}}
  %y = mtp.reshard %x from <[[], []]> to <[["tp"], [], []]> cause "fc" : tensor<2x4x8xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @target_of_four_entries () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{target has 4 entries, needs one for each of 3 dimensions}}
  %y = mtp.reshard %x from <[[], [], []]> to <[["tp"], [], [], []]> cause "fc" : tensor<2x4x8xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @nothing_to_do () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{needs two layouts that differ, got #mtp.layout<[["tp"], [], []]> twice}}
  %y = mtp.reshard %x from <[["tp"], [], []]> to <[["tp"], [], []]> cause "fc" : tensor<2x4x8xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @no_axis_in_the_mesh () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{the mesh has no axis "pp"}}
  %y = mtp.reshard %x from <[["pp"], [], []]> to <[[], [], []]> cause "fc" : tensor<2x4x8xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @no_partial_axis_in_the_mesh () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{the mesh has no axis "pp"}}
  %y = mtp.reshard %x from <[["tp"], [], []]> to <[[], [], []], partial = ["pp"]> cause "fc" : tensor<2x4x8xf32>
  mtp.yield
}
}
