// RUN: mtplan-opt %s --split-input-file --verify-diagnostics --mtp-verify-layouts
// RUN: not mtplan-opt %s --split-input-file --mtp-verify-layouts

// An update in place needs a gradient in the layout of the parameter.

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 1>} {
mtp.segment @s () attributes {layouts = []} {
  %w = mtp.parameter "w" {layout = #mtp.layout<[[], []]>} : tensor<4x8xf32>
  mtp.yield {layouts = []}
}
mtp.update {
  // expected-note @below {{made here}}
  %g = mtp.accumulated "w" {layout = #mtp.layout<[["dp"], []]>} : tensor<4x8xf32>
  // expected-error @below {{reads in layout [-, -] a value that has layout [dp, -]}}
  mtp.adamw "w", %g : tensor<4x8xf32>
}
}

// -----

// A state in another layout needs a gradient in the layout of the state.

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 1>} {
mtp.segment @s () attributes {layouts = []} {
  %w = mtp.parameter "w" {layout = #mtp.layout<[[], []]>} : tensor<4x8xf32>
  mtp.yield {layouts = []}
}
mtp.update {
  // expected-note @below {{made here}}
  %g = mtp.accumulated "w" {layout = #mtp.layout<[[], []]>} : tensor<4x8xf32>
  // expected-error @below {{reads in layout [dp, -] a value that has layout [-, -]}}
  %u = mtp.adamw "w", %g {layout = #mtp.layout<[["dp"], []]>} : tensor<4x8xf32> -> tensor<4x8xf32>
  %v = mtp.reshard %u from <[["dp"], []]> to <[[], []]> cause "w" : tensor<4x8xf32>
  mtp.store "w", %v : tensor<4x8xf32>
}
}

// -----

// A stored tensor has the layout of the parameter.

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 1>} {
mtp.segment @s () attributes {layouts = []} {
  %w = mtp.parameter "w" {layout = #mtp.layout<[[], []]>} : tensor<4x8xf32>
  mtp.yield {layouts = []}
}
mtp.update {
  %g = mtp.accumulated "w" {layout = #mtp.layout<[["dp"], []]>} : tensor<4x8xf32>
  // expected-note @below {{made here}}
  %u = mtp.adamw "w", %g {layout = #mtp.layout<[["dp"], []]>} : tensor<4x8xf32> -> tensor<4x8xf32>
  // expected-error @below {{reads in layout [-, -] a value that has layout [dp, -]}}
  mtp.store "w", %u : tensor<4x8xf32>
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 1>} {
mtp.segment @s () attributes {layouts = []} {
  %w = mtp.parameter "w" {layout = #mtp.layout<[[], []]>} : tensor<4x8xf32>
  mtp.yield {layouts = []}
}
mtp.update {
  %g = mtp.accumulated "w" {layout = #mtp.layout<[["dp"], []]>} : tensor<4x8xf32>
  // expected-error @below {{updates "w", but nothing stores it}}
  %u = mtp.adamw "w", %g {layout = #mtp.layout<[["dp"], []]>} : tensor<4x8xf32> -> tensor<4x8xf32>
  %h = mtp.accumulated "x" {layout = #mtp.layout<[["dp"], []]>} : tensor<4x8xf32>
  // expected-error @below {{updates "x", which no segment reads}}
  mtp.adamw "x", %h : tensor<4x8xf32>
}
}
