// RUN: mtplan-opt %s --split-input-file --verify-diagnostics --mtp-verify-stages
// RUN: not mtplan-opt %s --split-input-file --mtp-verify-stages

// Two stages have sums over all stages, without lists, in different orders.
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
  // expected-note @below {{the corresponding sum of another stage is here}}
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

// A stage accumulates a value but does not take part in the sum.
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
  // expected-error @below {{waits for stage 1, which ends after 0 sums without this one}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<2xf32>
}
}

// -----

// The later stage has one sum fewer.
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
  // expected-error @below {{waits for stage 1, which ends after 1 sums without this one}}
  %t = mtp.all_reduce %h over "pp" among [0, 1] cause "t" : tensor<2xf32>
}
mtp.update on 1 {
  %g = mtp.accumulated "s" : tensor<2xf32>
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<2xf32>
}
}

// -----

// Each pair of stages has a sum; the stages begin with different sums.
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
  // expected-error @below {{deadlocks: stages of its group wait at other sums}}
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
  // expected-note @below {{the corresponding sum of another stage is here}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<2xf32>
}
mtp.update on 1 {
  %g = mtp.accumulated "s" : tensor<4xf32>
  // expected-error @below {{is of 'tensor<4xf32>', needs 'tensor<2xf32>'}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<4xf32>
}
}

// -----

// The causes agree, but the summed accumulators differ.
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
  // expected-note @below {{the corresponding sum of another stage is here}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<2xf32>
}
mtp.update on 1 {
  %g = mtp.accumulated "t" : tensor<2xf32>
  // expected-error @below {{is sum 0 of stage 1, of "t"}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<2xf32>
}
}

// -----

// One stage sums values reduced over tp, the other values of single ranks.
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
  // expected-note @below {{the corresponding sum of another stage is here}}
  %s = mtp.all_reduce %p over "pp" among [0, 1] cause "s" : tensor<2xf32>
}
mtp.update on 1 {
  %g = mtp.accumulated "s" : tensor<2xf32>
  // expected-error @below {{sums "s" after other collectives}}
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "s" : tensor<2xf32>
}
}

// -----

// In a segment, a sum over stages would mix different micro-batches.
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
