// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2, "tp" = 4>, mtp.partitioned} {
mtp.segment @no_such_stage chunk 0 () {
  %x = mtp.parameter "x" : tensor<2x4xf32>
  // expected-error @below {{to 2 is none of the 2 stages}}
  mtp.send "m", %x to 2 : tensor<2x4xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2, "tp" = 4>, mtp.partitioned} {
// expected-note @below {{which is chunk 3}}
mtp.segment @to_itself chunk 3 () {
  %x = mtp.parameter "x" : tensor<2x4xf32>
  // expected-error @below {{to 1 is the stage of its own segment}}
  mtp.send "m", %x to 1 : tensor<2x4xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"tp" = 4>, mtp.partitioned} {
mtp.segment @no_stages chunk 0 () {
  %x = mtp.parameter "x" : tensor<2x4xf32>
  // expected-error @below {{needs a mesh with an axis "pp", which the module does not have}}
  mtp.send "m", %x to 1 : tensor<2x4xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @no_chunk () {
  %x = mtp.parameter "x" : tensor<2x4xf32>
  // expected-error @below {{needs a segment with a chunk around it}}
  mtp.send "m", %x to 1 : tensor<2x4xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
%x = mtp.parameter "x" : tensor<2x4xf32>
// expected-error @below {{needs a segment with a chunk around it}}
mtp.send "m", %x to 1 : tensor<2x4xf32>
}
