// RUN: mtplan-opt %s --split-input-file --verify-diagnostics --mtp-verify-partitioned
// RUN: not mtplan-opt %s --split-input-file --mtp-verify-partitioned

// expected-error @below {{is not partitioned}}
module {
mtp.segment @not_partitioned () {
  mtp.yield
}
}

// -----

module attributes {mtp.partitioned, mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @reshard_left () {
  %x = mtp.parameter "x" : tensor<4x8xf32>
  // expected-error @below {{is left in a partitioned module}}
  %z = mtp.reshard %x from <[["tp"], []]> to <[[], ["tp"]]> cause "x" : tensor<4x8xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.partitioned, mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @axis_of_one_rank () {
  %x = mtp.parameter "x" : tensor<4x8xf32>
  // expected-error @below {{runs over axis "dp", which has 1 rank}}
  %z = mtp.all_reduce %x over "dp" cause "x" : tensor<4x8xf32>
  mtp.yield
}
}
