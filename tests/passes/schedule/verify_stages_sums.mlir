// RUN: mtplan-opt %s --split-input-file --verify-diagnostics --mtp-verify-stages
// RUN: not mtplan-opt %s --split-input-file --mtp-verify-stages

// Sums over all stages, which therefore need not name them, in two orders.
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.accumulate "t", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.accumulate "t", %x : tensor<2xf32>
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "s" : tensor<2xf32>
  // expected-note @below {{but of another stage of its group it is this one}}
  %s = mtp.all_reduce %g over "pp" cause "s" : tensor<2xf32>
  %h = mtp.accumulated "t" : tensor<2xf32>
  %t = mtp.all_reduce %h over "pp" cause "t" : tensor<2xf32>
}
mtp.update on 1 {
  %h = mtp.accumulated "t" : tensor<2xf32>
  // expected-error @below {{is sum 0 of stage 1, of "t"}}
  %t = mtp.all_reduce %h over "pp" cause "t" : tensor<2xf32>
  %g = mtp.accumulated "s" : tensor<2xf32>
  %s = mtp.all_reduce %g over "pp" cause "s" : tensor<2xf32>
}
}

// -----

// A stage that holds a term but does not come to the sum.
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "s" : tensor<2xf32>
  // expected-error @below {{waits for stage 1, which comes to the end of its 0 sums without it}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<2xf32>
}
}

// -----

// One sum fewer on the stage that comes later.
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.accumulate "t", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.accumulate "t", %x : tensor<2xf32>
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "s" : tensor<2xf32>
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<2xf32>
  %h = mtp.accumulated "t" : tensor<2xf32>
  // expected-error @below {{waits for stage 1, which comes to the end of its 1 sums without it}}
  %t = mtp.all_reduce %h over "pp" among [0, 1] cause "t" : tensor<2xf32>
}
mtp.update on 1 {
  %g = mtp.accumulated "s" : tensor<2xf32>
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<2xf32>
}
}

// -----

// Every pair of stages has one sum, and every stage begins with another pair.
module attributes {mtp.mesh = #mtp.mesh<"pp" = 3>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.accumulate "u", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.accumulate "t", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @c chunk 2 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "t", %x : tensor<2xf32>
  mtp.accumulate "u", %x : tensor<2xf32>
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "s" : tensor<2xf32>
  // expected-error @below {{waits for stages which wait for it elsewhere}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<2xf32>
  %k = mtp.accumulated "u" : tensor<2xf32>
  %u = mtp.all_reduce %k over "pp" among [0, 2] cause "u" : tensor<2xf32>
}
mtp.update on 1 {
  %h = mtp.accumulated "t" : tensor<2xf32>
  // expected-note @below {{stage 1 waits here}}
  %t = mtp.all_reduce %h over "pp" among [1, 2] cause "t" : tensor<2xf32>
  %g = mtp.accumulated "s" : tensor<2xf32>
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<2xf32>
}
mtp.update on 2 {
  %k = mtp.accumulated "u" : tensor<2xf32>
  %u = mtp.all_reduce %k over "pp" among [0, 2] cause "u" : tensor<2xf32>
  %h = mtp.accumulated "t" : tensor<2xf32>
  %t = mtp.all_reduce %h over "pp" among [1, 2] cause "t" : tensor<2xf32>
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "s" : tensor<2xf32>
  %s = mtp.all_reduce %g over "pp" cause "s" : tensor<2xf32>
}
mtp.update on 1 {
  %g = mtp.accumulated "s" : tensor<2xf32>
  // expected-error @below {{takes the maximum of the terms of "s", which are summed}}
  %s = mtp.all_reduce %g over "pp" max cause "s" : tensor<2xf32>
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  %y = mtp.input "y" dims ["other"] : tensor<4xf32>
  mtp.accumulate "s", %y : tensor<4xf32>
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "s" : tensor<2xf32>
  // expected-note @below {{but of another stage of its group it is this one}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<2xf32>
}
mtp.update on 1 {
  %g = mtp.accumulated "s" : tensor<4xf32>
  // expected-error @below {{is of 'tensor<4xf32>', needs 'tensor<2xf32>'}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<4xf32>
}
}

// -----

// The causes agree, but not what is summed.
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.accumulate "t", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.accumulate "t", %x : tensor<2xf32>
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "s" : tensor<2xf32>
  // expected-note @below {{but of another stage of its group it is this one}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<2xf32>
}
mtp.update on 1 {
  %g = mtp.accumulated "t" : tensor<2xf32>
  // expected-error @below {{is sum 0 of stage 1, of "t"}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<2xf32>
}
}

// -----

// One stage brings whole terms to the sum, the other what a rank of it has.
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2, "tp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  %x = mtp.input "x" dims ["other"] : tensor<2xf32>
  mtp.accumulate "s", %x : tensor<2xf32>
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "s" : tensor<2xf32>
  %p = mtp.all_reduce %g over "tp" cause "s" : tensor<2xf32>
  // expected-note @below {{but of another stage of its group it is this one}}
  %s = mtp.all_reduce %p over "pp" among [0, 1] cause "s" : tensor<2xf32>
}
mtp.update on 1 {
  %g = mtp.accumulated "s" : tensor<2xf32>
  // expected-error @below {{sums "s" after other collectives}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<2xf32>
}
}

// -----

// In a segment a sum would be over what stages have for one micro-batch each.
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  // expected-error @below {{runs over stages, but these only sum what mtp.update reads by mtp.accumulated}}
  %s = mtp.all_reduce %x over "pp" cause "x" : tensor<2xf32>
  mtp.yield
}
mtp.segment @b chunk 1 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  %s = mtp.all_reduce %x over "pp" cause "x" : tensor<2xf32>
  mtp.yield
}
}
