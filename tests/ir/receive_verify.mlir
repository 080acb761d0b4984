// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2, "tp" = 4>, mtp.partitioned} {
mtp.segment @no_such_stage chunk 0 () {
  // expected-error @below {{from -1 is none of the 2 stages}}
  %x = mtp.receive "m" from -1 : tensor<2x4xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2, "tp" = 4>, mtp.partitioned} {
// expected-note @below {{which is chunk 2}}
mtp.segment @from_itself chunk 2 () {
  // expected-error @below {{from 0 is the stage of its own segment}}
  %x = mtp.receive "m" from 0 : tensor<2x4xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @no_chunk () {
  // expected-error @below {{needs a segment with a chunk around it}}
  %x = mtp.receive "m" from 0 : tensor<2x4xf32>
  mtp.yield
}
}
