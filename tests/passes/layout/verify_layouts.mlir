// RUN: mtplan-opt %s --split-input-file --verify-diagnostics --mtp-verify-layouts
// RUN: not mtplan-opt %s --split-input-file --mtp-verify-layouts

// expected-error @below {{has no mesh}}
module {
mtp.segment @no_mesh () {
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @no_strategy () attributes {layouts = []} {
  %x = mtp.parameter "x" {layout = #mtp.layout<[[], []]>} : tensor<4x8xf32>
  // expected-error @below {{has no strategy or layout on mesh}}
  %y = mtp.scale "y" (%x) by 2.0 : tensor<4x8xf32>
  mtp.yield {layouts = []}
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @factor_of_another_op () attributes {layouts = []} {
  %x = mtp.parameter "x" {layout = #mtp.layout<[[], []]>} : tensor<4x8xf32>
  // expected-error @below {{has no strategy or layout on mesh}}
  %y = mtp.scale "y" (%x) by 2.0 {mtp.strategy = #mtp.strategy<"tp" = "o">} : tensor<4x8xf32>
  mtp.yield {layouts = []}
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @split_does_not_divide () attributes {layouts = []} {
  // expected-error @below {{does not divide 'tensor<3x8xf32>'}}
  %x = mtp.parameter "x" {layout = #mtp.layout<[["tp"], []]>} : tensor<3x8xf32>
  mtp.yield {layouts = []}
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @data_in_terms () attributes {layouts = []} {
  // expected-error @below {{is partial, but data is read whole or in pieces}}
  %x = mtp.input "x" dims ["batch", "other"] {layout = #mtp.layout<[[], []], partial = ["tp"]>} : tensor<4x8xf32>
  mtp.yield {layouts = []}
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @op_reads_another_layout () attributes {layouts = []} {
  // expected-note @below {{made here}}
  %x = mtp.parameter "x" {layout = #mtp.layout<[["tp"], []]>} : tensor<4x8xf32>
  // expected-error @below {{reads}}
  %y = mtp.scale "y" (%x) by 2.0 {mtp.strategy = #mtp.strategy<"tp" = "d1">} : tensor<4x8xf32>
  mtp.yield {layouts = []}
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @reshard_reads_another_layout () attributes {layouts = []} {
  // expected-note @below {{made here}}
  %x = mtp.parameter "x" {layout = #mtp.layout<[["tp"], []]>} : tensor<4x8xf32>
  // expected-error @below {{reads}}
  %y = mtp.reshard %x from <[[], ["tp"]]> to <[[], []]> cause "x" : tensor<4x8xf32>
  mtp.yield {layouts = []}
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @yield_reads_another_layout () attributes {layouts = []} {
  // expected-note @below {{made here}}
  %x = mtp.parameter "x" {layout = #mtp.layout<[["tp"], []]>} : tensor<4x8xf32>
  // expected-error @below {{reads}}
  mtp.yield %x : tensor<4x8xf32> {layouts = [#mtp.layout<[[], []]>]}
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @yield_without_layouts () attributes {layouts = []} {
  %x = mtp.parameter "x" {layout = #mtp.layout<[[], []]>} : tensor<4x8xf32>
  // expected-error @below {{yields 1 values but 0 layouts}}
  mtp.yield %x : tensor<4x8xf32>
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @accumulator_without_layout () attributes {layouts = []} {
  %x = mtp.parameter "x" {layout = #mtp.layout<[[], []]>} : tensor<4x8xf32>
  // expected-error @below {{has no layout}}
  mtp.accumulate "x", %x : tensor<4x8xf32>
  mtp.yield {layouts = []}
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @accumulator_of_another_layout () attributes {layouts = []} {
  // expected-note @below {{made here}}
  %x = mtp.parameter "x" {layout = #mtp.layout<[[], []]>} : tensor<4x8xf32>
  // expected-error @below {{reads}}
  mtp.accumulate "x", %x {layout = #mtp.layout<[[], []], partial = ["tp"]>} : tensor<4x8xf32>
  mtp.yield {layouts = []}
}
}
