module attributes {mtp.layers = 2 : i64, mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 2>, mtp.partitioned} {
  mtp.segment @embed () attributes {layouts = []} {
    %0 = mtp.input "ids" dims ["batch", "sequence"] below 500 {layout = #mtp.layout<[["dp"], []]>} : tensor<256x32xi32>
    %1 = mtp.parameter "wte.weight" {layout = #mtp.layout<[[], []]>} : tensor<512x64xbf16>
    %2 = mtp.embedding "wte"(%0, %1) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<256x32xi32>, tensor<512x64xbf16>) -> tensor<256x32x64xbf16>
    %3 = mtp.dropout "embed.drop"(%2) {mask = "embed.drop", mtp.strategy = #mtp.strategy<"dp" = "d0">, rate = 1.000000e-01 : f64} : tensor<256x32x64xbf16>
    mtp.backward (%arg0: tensor<256x32x64xbf16>) attributes {layouts = [#mtp.layout<[["dp"], [], []]>]} {
      %4 = mtp.input "ids" dims ["batch", "sequence"] below 500 {layout = #mtp.layout<[["dp"], []]>} : tensor<256x32xi32>
      %5 = mtp.dropout "embed.drop.dx"(%arg0) {mask = "embed.drop", mtp.strategy = #mtp.strategy<"dp" = "d0">, rate = 1.000000e-01 : f64} : tensor<256x32x64xbf16>
      %6 = mtp.embedding_grad "wte.dw"(%4, %5) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<256x32xi32>, tensor<256x32x64xbf16>) -> tensor<512x64xbf16>
      mtp.accumulate "wte.weight", %6 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<512x64xbf16>
      mtp.yield {layouts = []}
    }
    mtp.yield %3 : tensor<256x32x64xbf16> {layouts = [#mtp.layout<[["dp"], [], []]>]}
  }
  mtp.segment @h repeat 2 (%arg0: tensor<256x32x64xbf16>) attributes {layouts = [#mtp.layout<[["dp"], [], []]>]} {
    %0 = mtp.parameter "h.*.ln_1.weight" {init = "ones", layout = #mtp.layout<[[]]>} : tensor<64xbf16>
    %1 = mtp.parameter "h.*.ln_1.bias" {init = "zeros", layout = #mtp.layout<[[]]>} : tensor<64xbf16>
    %2 = mtp.layer_norm "h.*.ln_1"(%arg0, %0, %1) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<256x32x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<256x32x64xbf16>
    %3 = mtp.parameter "h.*.attn.q.weight" {layout = #mtp.layout<[[], []]>} : tensor<64x64xbf16>
    %4 = mtp.einsum "h.*.attn.q" "bsi,io->bso"(%2, %3) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<64x64xbf16>) -> tensor<256x32x64xbf16>
    %5 = mtp.parameter "h.*.attn.k.weight" {layout = #mtp.layout<[[], []]>} : tensor<64x64xbf16>
    %6 = mtp.einsum "h.*.attn.k" "bsi,io->bso"(%2, %5) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<64x64xbf16>) -> tensor<256x32x64xbf16>
    %7 = mtp.parameter "h.*.attn.v.weight" {layout = #mtp.layout<[[], []]>} : tensor<64x64xbf16>
    %8 = mtp.einsum "h.*.attn.v" "bsi,io->bso"(%2, %7) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<64x64xbf16>) -> tensor<256x32x64xbf16>
    %9 = mtp.rope "h.*.attn.q_rope"(%4) {head_dim = 8 : i64, interleaved, mtp.strategy = #mtp.strategy<"dp" = "b">, rotary_dim = 4 : i64, theta = 1.000000e+04 : f64} : tensor<256x32x64xbf16>
    %10 = mtp.rope "h.*.attn.k_rope"(%6) {head_dim = 8 : i64, interleaved, mtp.strategy = #mtp.strategy<"dp" = "b">, rotary_dim = 4 : i64, theta = 1.000000e+04 : f64} : tensor<256x32x64xbf16>
    %result, %lse = mtp.attention "h.*.attn.core"(%9, %10, %8) {causal = true, head_dim = 8 : i64, mask = "h.*.attn.core", mtp.strategy = #mtp.strategy<"dp" = "b">, rate = 1.000000e-01 : f64, scale = 0.35355339059327373 : f64} : (tensor<256x32x64xbf16>, tensor<256x32x64xbf16>, tensor<256x32x64xbf16>) -> (tensor<256x32x64xbf16>, tensor<256x32x8xf32>)
    %11 = mtp.parameter "h.*.attn.proj.weight" {init = "residual", layout = #mtp.layout<[[], []]>} : tensor<64x64xbf16>
    %12 = mtp.einsum "h.*.attn.proj" "bsi,io->bso"(%result, %11) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<64x64xbf16>) -> tensor<256x32x64xbf16>
    %13 = mtp.dropout "h.*.attn.drop"(%12) {mask = "h.*.attn.drop", mtp.strategy = #mtp.strategy<"dp" = "d0">, rate = 1.000000e-01 : f64} : tensor<256x32x64xbf16>
    %14 = mtp.parameter "h.*.mlp.fc1.weight" {layout = #mtp.layout<[[], []]>} : tensor<64x256xbf16>
    %15 = mtp.parameter "h.*.mlp.fc1.bias" {init = "zeros", layout = #mtp.layout<[[]]>} : tensor<256xbf16>
    %16 = mtp.einsum "h.*.mlp.fc1" "bsi,io->bso"(%2, %14, %15) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<64x256xbf16>, tensor<256xbf16>) -> tensor<256x32x256xbf16>
    %17 = mtp.activation "h.*.mlp.act" gelu_tanh(%16) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<256x32x256xbf16>
    %18 = mtp.parameter "h.*.mlp.fc2.weight" {init = "residual", layout = #mtp.layout<[[], []]>} : tensor<256x64xbf16>
    %19 = mtp.parameter "h.*.mlp.fc2.bias" {init = "zeros", layout = #mtp.layout<[[]]>} : tensor<64xbf16>
    %20 = mtp.einsum "h.*.mlp.fc2" "bsi,io->bso"(%17, %18, %19) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x256xbf16>, tensor<256x64xbf16>, tensor<64xbf16>) -> tensor<256x32x64xbf16>
    %21 = mtp.dropout "h.*.mlp.drop"(%20) {mask = "h.*.mlp.drop", mtp.strategy = #mtp.strategy<"dp" = "d0">, rate = 1.000000e-01 : f64} : tensor<256x32x64xbf16>
    %22 = mtp.add "h.*.attn.add"(%13, %21) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<256x32x64xbf16>
    %23 = mtp.add "h.*.mlp.add"(%arg0, %22) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<256x32x64xbf16>
    mtp.backward (%arg1: tensor<256x32x64xbf16>) attributes {layouts = [#mtp.layout<[["dp"], [], []]>]} {
      %24 = mtp.dropout "h.*.mlp.drop.dx"(%arg1) {mask = "h.*.mlp.drop", mtp.strategy = #mtp.strategy<"dp" = "d0">, rate = 1.000000e-01 : f64} : tensor<256x32x64xbf16>
      %25 = mtp.einsum "h.*.mlp.fc2.dx" "bso,io->bsi"(%24, %18) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<256x64xbf16>) -> tensor<256x32x256xbf16>
      %26 = mtp.einsum "h.*.mlp.fc2.dw" "bsi,bso->io"(%17, %24) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x256xbf16>, tensor<256x32x64xbf16>) -> tensor<256x64xbf16>
      %27 = mtp.sum "h.*.mlp.fc2.db"(%24) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<256x32x64xbf16>) -> tensor<64xbf16>
      mtp.accumulate "h.*.mlp.fc2.weight", %26 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<256x64xbf16>
      mtp.accumulate "h.*.mlp.fc2.bias", %27 {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
      %28 = mtp.activation_grad "h.*.mlp.act.grad" gelu_tanh(%16, %25) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<256x32x256xbf16>
      %29 = mtp.einsum "h.*.mlp.fc1.dx" "bso,io->bsi"(%28, %14) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x256xbf16>, tensor<64x256xbf16>) -> tensor<256x32x64xbf16>
      %30 = mtp.einsum "h.*.mlp.fc1.dw" "bsi,bso->io"(%2, %28) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<256x32x256xbf16>) -> tensor<64x256xbf16>
      %31 = mtp.sum "h.*.mlp.fc1.db"(%28) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<256x32x256xbf16>) -> tensor<256xbf16>
      mtp.accumulate "h.*.mlp.fc1.weight", %30 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x256xbf16>
      mtp.accumulate "h.*.mlp.fc1.bias", %31 {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<256xbf16>
      %32 = mtp.dropout "h.*.attn.drop.dx"(%arg1) {mask = "h.*.attn.drop", mtp.strategy = #mtp.strategy<"dp" = "d0">, rate = 1.000000e-01 : f64} : tensor<256x32x64xbf16>
      %33 = mtp.einsum "h.*.attn.proj.dx" "bso,io->bsi"(%32, %11) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<64x64xbf16>) -> tensor<256x32x64xbf16>
      %34 = mtp.einsum "h.*.attn.proj.dw" "bsi,bso->io"(%result, %32) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<256x32x64xbf16>) -> tensor<64x64xbf16>
      mtp.accumulate "h.*.attn.proj.weight", %34 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
      %query_gradient, %key_gradient, %value_gradient = mtp.attention_grad "h.*.attn.core.grad"(%9, %10, %8, %result, %lse, %33) {causal = true, head_dim = 8 : i64, mask = "h.*.attn.core", mtp.strategy = #mtp.strategy<"dp" = "b">, rate = 1.000000e-01 : f64, scale = 0.35355339059327373 : f64} : (tensor<256x32x64xbf16>, tensor<256x32x64xbf16>, tensor<256x32x64xbf16>, tensor<256x32x64xbf16>, tensor<256x32x8xf32>, tensor<256x32x64xbf16>) -> (tensor<256x32x64xbf16>, tensor<256x32x64xbf16>, tensor<256x32x64xbf16>)
      %35 = mtp.rope "h.*.attn.k_rope.dx"(%key_gradient) {head_dim = 8 : i64, interleaved, inverse, mtp.strategy = #mtp.strategy<"dp" = "b">, rotary_dim = 4 : i64, theta = 1.000000e+04 : f64} : tensor<256x32x64xbf16>
      %36 = mtp.rope "h.*.attn.q_rope.dx"(%query_gradient) {head_dim = 8 : i64, interleaved, inverse, mtp.strategy = #mtp.strategy<"dp" = "b">, rotary_dim = 4 : i64, theta = 1.000000e+04 : f64} : tensor<256x32x64xbf16>
      %37 = mtp.einsum "h.*.attn.v.dx" "bso,io->bsi"(%value_gradient, %7) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<64x64xbf16>) -> tensor<256x32x64xbf16>
      %38 = mtp.add "h.*.attn.v.sum"(%29, %37) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<256x32x64xbf16>
      %39 = mtp.einsum "h.*.attn.v.dw" "bsi,bso->io"(%2, %value_gradient) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<256x32x64xbf16>) -> tensor<64x64xbf16>
      mtp.accumulate "h.*.attn.v.weight", %39 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
      %40 = mtp.einsum "h.*.attn.k.dx" "bso,io->bsi"(%35, %5) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<64x64xbf16>) -> tensor<256x32x64xbf16>
      %41 = mtp.add "h.*.attn.k.sum"(%38, %40) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<256x32x64xbf16>
      %42 = mtp.einsum "h.*.attn.k.dw" "bsi,bso->io"(%2, %35) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<256x32x64xbf16>) -> tensor<64x64xbf16>
      mtp.accumulate "h.*.attn.k.weight", %42 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
      %43 = mtp.einsum "h.*.attn.q.dx" "bso,io->bsi"(%36, %3) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<64x64xbf16>) -> tensor<256x32x64xbf16>
      %44 = mtp.add "h.*.attn.q.sum"(%41, %43) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<256x32x64xbf16>
      %45 = mtp.einsum "h.*.attn.q.dw" "bsi,bso->io"(%2, %36) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<256x32x64xbf16>) -> tensor<64x64xbf16>
      mtp.accumulate "h.*.attn.q.weight", %45 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
      %input_gradient, %gamma_gradient, %beta_gradient = mtp.layer_norm_grad "h.*.ln_1.grad"(%arg0, %0, %44) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<256x32x64xbf16>, tensor<64xbf16>, tensor<256x32x64xbf16>) -> (tensor<256x32x64xbf16>, tensor<64xbf16>, tensor<64xbf16>)
      %46 = mtp.add "h.*.ln_1.sum"(%arg1, %input_gradient) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<256x32x64xbf16>
      mtp.accumulate "h.*.ln_1.weight", %gamma_gradient {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
      mtp.accumulate "h.*.ln_1.bias", %beta_gradient {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
      mtp.yield %46 : tensor<256x32x64xbf16> {layouts = [#mtp.layout<[["dp"], [], []]>]}
    }
    mtp.yield %23 : tensor<256x32x64xbf16> {layouts = [#mtp.layout<[["dp"], [], []]>]}
  }
  mtp.segment @head (%arg0: tensor<256x32x64xbf16>) attributes {layouts = [#mtp.layout<[["dp"], [], []]>]} {
    %0 = mtp.input "count" dims [] {layout = #mtp.layout<[]>} : tensor<f32>
    %1 = mtp.input "targets" dims ["batch", "sequence"] below 500 {layout = #mtp.layout<[["dp"], []]>} : tensor<256x32xi32>
    %2 = mtp.parameter "ln_f.weight" {init = "ones", layout = #mtp.layout<[[]]>} : tensor<64xbf16>
    %3 = mtp.parameter "ln_f.bias" {init = "zeros", layout = #mtp.layout<[[]]>} : tensor<64xbf16>
    %4 = mtp.layer_norm "ln_f"(%arg0, %2, %3) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<256x32x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<256x32x64xbf16>
    %5 = mtp.parameter "lm_head.weight" {layout = #mtp.layout<[[], []]>} : tensor<64x512xbf16>
    %6 = mtp.parameter "lm_head.bias" {init = "zeros", layout = #mtp.layout<[[]]>} : tensor<512xbf16>
    %7 = mtp.einsum "lm_head" "bsi,iv->bsv"(%4, %5, %6) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<64x512xbf16>, tensor<512xbf16>) -> tensor<256x32x512xbf16>
    %8 = mtp.vocab_max "loss.max"(%7) {classes = 500 : i64, mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<256x32x512xbf16>) -> tensor<256x32xf32>
    %9 = mtp.vocab_sum_exp "loss.sum_exp"(%7, %8) {classes = 500 : i64, mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<256x32x512xbf16>, tensor<256x32xf32>) -> tensor<256x32xf32>
    %10 = mtp.vocab_pick "loss.pick"(%7, %1) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<256x32x512xbf16>, tensor<256x32xi32>) -> tensor<256x32xf32>
    %11 = mtp.token_loss "loss"(%8, %9, %10, %1, %0) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<256x32xf32>, tensor<256x32xf32>, tensor<256x32xf32>, tensor<256x32xi32>, tensor<f32>) -> tensor<f32>
    mtp.accumulate "loss", %11 {layout = #mtp.layout<[], partial = ["dp"]>} : tensor<f32>
    mtp.backward () attributes {layouts = []} {
      %12 = mtp.input "count" dims [] {layout = #mtp.layout<[]>} : tensor<f32>
      %13 = mtp.input "targets" dims ["batch", "sequence"] below 500 {layout = #mtp.layout<[["dp"], []]>} : tensor<256x32xi32>
      %14 = mtp.cross_entropy_grad "loss.grad"(%7, %8, %9, %13, %12) {classes = 500 : i64, mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<256x32x512xbf16>, tensor<256x32xf32>, tensor<256x32xf32>, tensor<256x32xi32>, tensor<f32>) -> tensor<256x32x512xbf16>
      %15 = mtp.einsum "lm_head.dx" "bsv,iv->bsi"(%14, %5) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x512xbf16>, tensor<64x512xbf16>) -> tensor<256x32x64xbf16>
      %16 = mtp.einsum "lm_head.dw" "bsi,bsv->iv"(%4, %14) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<256x32x64xbf16>, tensor<256x32x512xbf16>) -> tensor<64x512xbf16>
      %17 = mtp.sum "lm_head.db"(%14) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<256x32x512xbf16>) -> tensor<512xbf16>
      mtp.accumulate "lm_head.weight", %16 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x512xbf16>
      mtp.accumulate "lm_head.bias", %17 {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<512xbf16>
      %input_gradient, %gamma_gradient, %beta_gradient = mtp.layer_norm_grad "ln_f.grad"(%arg0, %2, %15) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<256x32x64xbf16>, tensor<64xbf16>, tensor<256x32x64xbf16>) -> (tensor<256x32x64xbf16>, tensor<64xbf16>, tensor<64xbf16>)
      mtp.accumulate "ln_f.weight", %gamma_gradient {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
      mtp.accumulate "ln_f.bias", %beta_gradient {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
      mtp.yield %input_gradient : tensor<256x32x64xbf16> {layouts = [#mtp.layout<[["dp"], [], []]>]}
    }
    mtp.yield {layouts = []}
  }
  mtp.update {
    %0 = mtp.accumulated "wte.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<512x64xbf16>
    %1 = mtp.all_reduce %0 over "dp" cause "wte.weight" : tensor<512x64xbf16>
    mtp.adamw "wte.weight", %1 {decay} : tensor<512x64xbf16>
    %2 = mtp.accumulated "h.*.ln_1.weight" {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
    %3 = mtp.all_reduce %2 over "dp" cause "h.*.ln_1.weight" : tensor<64xbf16>
    mtp.adamw "h.*.ln_1.weight", %3 : tensor<64xbf16>
    %4 = mtp.accumulated "h.*.ln_1.bias" {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
    %5 = mtp.all_reduce %4 over "dp" cause "h.*.ln_1.bias" : tensor<64xbf16>
    mtp.adamw "h.*.ln_1.bias", %5 : tensor<64xbf16>
    %6 = mtp.accumulated "h.*.attn.q.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
    %7 = mtp.all_reduce %6 over "dp" cause "h.*.attn.q.weight" : tensor<64x64xbf16>
    mtp.adamw "h.*.attn.q.weight", %7 {decay} : tensor<64x64xbf16>
    %8 = mtp.accumulated "h.*.attn.k.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
    %9 = mtp.all_reduce %8 over "dp" cause "h.*.attn.k.weight" : tensor<64x64xbf16>
    mtp.adamw "h.*.attn.k.weight", %9 {decay} : tensor<64x64xbf16>
    %10 = mtp.accumulated "h.*.attn.v.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
    %11 = mtp.all_reduce %10 over "dp" cause "h.*.attn.v.weight" : tensor<64x64xbf16>
    mtp.adamw "h.*.attn.v.weight", %11 {decay} : tensor<64x64xbf16>
    %12 = mtp.accumulated "h.*.attn.proj.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
    %13 = mtp.all_reduce %12 over "dp" cause "h.*.attn.proj.weight" : tensor<64x64xbf16>
    mtp.adamw "h.*.attn.proj.weight", %13 {decay} : tensor<64x64xbf16>
    %14 = mtp.accumulated "h.*.mlp.fc1.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x256xbf16>
    %15 = mtp.all_reduce %14 over "dp" cause "h.*.mlp.fc1.weight" : tensor<64x256xbf16>
    mtp.adamw "h.*.mlp.fc1.weight", %15 {decay} : tensor<64x256xbf16>
    %16 = mtp.accumulated "h.*.mlp.fc1.bias" {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<256xbf16>
    %17 = mtp.all_reduce %16 over "dp" cause "h.*.mlp.fc1.bias" : tensor<256xbf16>
    mtp.adamw "h.*.mlp.fc1.bias", %17 : tensor<256xbf16>
    %18 = mtp.accumulated "h.*.mlp.fc2.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<256x64xbf16>
    %19 = mtp.all_reduce %18 over "dp" cause "h.*.mlp.fc2.weight" : tensor<256x64xbf16>
    mtp.adamw "h.*.mlp.fc2.weight", %19 {decay} : tensor<256x64xbf16>
    %20 = mtp.accumulated "h.*.mlp.fc2.bias" {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
    %21 = mtp.all_reduce %20 over "dp" cause "h.*.mlp.fc2.bias" : tensor<64xbf16>
    mtp.adamw "h.*.mlp.fc2.bias", %21 : tensor<64xbf16>
    %22 = mtp.accumulated "ln_f.weight" {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
    %23 = mtp.all_reduce %22 over "dp" cause "ln_f.weight" : tensor<64xbf16>
    mtp.adamw "ln_f.weight", %23 : tensor<64xbf16>
    %24 = mtp.accumulated "ln_f.bias" {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
    %25 = mtp.all_reduce %24 over "dp" cause "ln_f.bias" : tensor<64xbf16>
    mtp.adamw "ln_f.bias", %25 : tensor<64xbf16>
    %26 = mtp.accumulated "lm_head.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x512xbf16>
    %27 = mtp.all_reduce %26 over "dp" cause "lm_head.weight" : tensor<64x512xbf16>
    mtp.adamw "lm_head.weight", %27 {decay} : tensor<64x512xbf16>
    %28 = mtp.accumulated "lm_head.bias" {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<512xbf16>
    %29 = mtp.all_reduce %28 over "dp" cause "lm_head.bias" : tensor<512xbf16>
    mtp.adamw "lm_head.bias", %29 : tensor<512xbf16>
    %30 = mtp.accumulated "loss" {layout = #mtp.layout<[], partial = ["dp"]>} : tensor<f32>
    %31 = mtp.all_reduce %30 over "dp" cause "loss" : tensor<f32>
    mtp.result "loss", %31 : tensor<f32>
  }
}

