// RUN: mtplan-opt %s --split-input-file --verify-diagnostics --mtp-differentiate
// RUN: not mtplan-opt %s --split-input-file --mtp-differentiate

// expected-error @below {{has no mtp.token_loss to differentiate}}
module {
mtp.segment @no_loss () {
  %x = mtp.parameter "x" : tensor<4xf32>
  mtp.yield
}
}

// -----

mtp.segment @open_end () {
  %x = mtp.parameter "x" : tensor<4xf32>
  // expected-error @below {{yields 1 values, but @open_end is the last segment}}
  mtp.yield %x : tensor<4xf32>
}

// -----

mtp.segment @integers_handed_on () {
  %ids = mtp.input "ids" dims ["batch", "sequence"] : tensor<2x4xi32>
  // expected-error @below {{value 0 of @integers_handed_on, of type 'tensor<2x4xi32>', has no gradient}}
  mtp.yield %ids : tensor<2x4xi32>
}
mtp.segment @head (%ids: tensor<2x4xi32>) {
  %l = mtp.parameter "l" : tensor<2x4x8xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @nothing_to_train () {
  %x = mtp.input "x" dims ["batch", "sequence", "other"] : tensor<2x4x8xf32>
  %y = mtp.scale "half"(%x) by 0.5 : tensor<2x4x8xf32>
  // expected-error @below {{value 0 of @nothing_to_train depends on no parameter}}
  mtp.yield %y : tensor<2x4x8xf32>
}
mtp.segment @head (%l: tensor<2x4x8xf32>) {
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @first () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  mtp.yield %x : tensor<2x4x8xf32>
}
// expected-error @below {{argument 0 does not reach the loss}}
mtp.segment @ignores_its_argument (%x: tensor<2x4x8xf32>) {
  %l = mtp.parameter "l" : tensor<2x4x8xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @unused_parameter () {
  // expected-error @below {{parameter "unused" does not reach the loss}}
  %u = mtp.parameter "unused" : tensor<4xf32>
  %l = mtp.parameter "l" : tensor<2x4x8xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @dead_end () {
  // expected-error @below {{parameter "dead" does not reach the loss}}
  %d = mtp.parameter "dead" : tensor<4xf32>
  %e = mtp.scale "end"(%d) by 2.0 : tensor<4xf32>
  %l = mtp.parameter "l" : tensor<2x4x8xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @one_parameter_twice () {
  // expected-note @below {{the first is here}}
  %l = mtp.parameter "l" : tensor<2x4x8xf32>
  // expected-error @below {{parameter "l" is read a second time in @one_parameter_twice, needs one mtp.parameter per segment}}
  %k = mtp.parameter "l" : tensor<2x4x8xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @sum_has_no_gradient () {
  %w = mtp.parameter "w" : tensor<2x2x4x8xf32>
  // expected-error @below {{gets a gradient for result 0, but there is no operator that broadcasts it back}}
  %l = mtp.sum "sum"(%w) : (tensor<2x2x4x8xf32>) -> tensor<2x4x8xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @maximum_on_its_own () {
  %w = mtp.parameter "w" : tensor<2x4x8x3xf32>
  // expected-error @below {{gets a gradient for result 0, but is differentiated only as a part of mtp.token_loss}}
  %l = mtp.vocab_max "max"(%w) {classes = 3 : i64} : (tensor<2x4x8x3xf32>) -> tensor<2x4x8xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @backward_operator_forward () {
  %w = mtp.parameter "w" : tensor<2x4x8xf32>
  // expected-error @below {{gets a gradient for result 0, but is part of a backward half, which is not differentiated again}}
  %l = mtp.softmax_grad "soft.grad"(%w, %w) : tensor<2x4x8xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @lse_is_read () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{gets a gradient for its lse, which has none: it is there for mtp.attention_grad alone}}
  %y, %l = mtp.attention "core"(%x, %x, %x) {head_dim = 1 : i64, causal = true, scale = 0.5 : f64, rate = 0.0 : f64, mask = "core"} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>)
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @balance_is_read () {
  %l = mtp.parameter "l" : tensor<2x4x8xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  // expected-error @below {{may only be accumulated: its gradient is taken to be 1}}
  %b = mtp.balance_loss "balance"(%l, %count) {coefficient = 0.01 : f64, top_k = 2 : i64} : (tensor<2x4x8xf32>, tensor<f32>) -> tensor<f32>
  // expected-note @below {{but it is also read here}}
  %twice = mtp.scale "twice"(%b) by 2.0 : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @loss_is_read () {
  %l = mtp.parameter "l" : tensor<2x4x8xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  // expected-error @below {{may only be accumulated: its gradient is taken to be 1}}
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  // expected-note @below {{but it is also read here}}
  %twice = mtp.scale "twice"(%loss) by 2.0 : tensor<f32>
  mtp.yield
}

// -----

mtp.segment @loss_of_other_values () {
  %m = mtp.parameter "m" : tensor<2x4xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  // expected-error @below {{has no gradient unless it reads mtp.vocab_max, mtp.vocab_sum_exp and mtp.vocab_pick}}
  %loss = mtp.token_loss "loss"(%m, %m, %m, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @loss_of_two_logits () {
  %l = mtp.parameter "l" : tensor<2x4x8xf32>
  %k = mtp.parameter "k" : tensor<2x4x8xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%k, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  // expected-error @below {{has no gradient: its maximum, sum_exp and picked are not of the same logits and targets}}
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

mtp.segment @loss_of_two_numbers_of_classes () {
  %l = mtp.parameter "l" : tensor<2x4x8xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 7 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  // expected-error @below {{has no gradient: its maximum is over 7 classes, its sum_exp over 8}}
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"tp" = 2>} {
mtp.segment @planned_already () {
  %w = mtp.parameter "w" : tensor<2x4x8xf32>
  // expected-error @below {{has no gradient: differentiate before planning}}
  %l = mtp.reshard %w from <[["tp"], [], []]> to <[[], [], []]> cause "w" : tensor<2x4x8xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}
}

// -----

// expected-error @below {{is differentiated in part: 1 of 2 segments have an mtp.backward, 0 of 1 mtp.update is there}}
module {
mtp.segment @with () {
  mtp.backward () {
    mtp.yield
  }
  mtp.yield
}
mtp.segment @without () {
  mtp.yield
}
}

// -----

mtp.segment @two_types_of_one_scalar () {
  %l = mtp.parameter "l" : tensor<2x4x8xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  // expected-note @below {{since here}}
  mtp.accumulate "loss", %loss : tensor<f32>
  // expected-error @below {{accumulates 'tensor<2x4xf32>' into "loss", which is 'tensor<f32>'}}
  mtp.accumulate "loss", %m : tensor<2x4xf32>
  mtp.yield
}
