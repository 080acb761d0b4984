module attributes {mtp.layers = 2 : i64, mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 2>} {
  mtp.segment @embed () attributes {layouts = []} {
    %0 = mtp.input "ids" dims ["batch", "sequence"] below 500 {layout = #mtp.layout<[["dp"], []]>} : tensor<512x32xi32>
    %1 = mtp.parameter "wte.weight" {layout = #mtp.layout<[[], []]>} : tensor<512x64xbf16>
    %2 = mtp.embedding "wte"(%0, %1) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<512x32xi32>, tensor<512x64xbf16>) -> tensor<512x32x64xbf16>
    mtp.backward (%arg0: tensor<512x32x64xbf16>) attributes {layouts = [#mtp.layout<[["dp"], [], []]>]} {
      %3 = mtp.input "ids" dims ["batch", "sequence"] below 500 {layout = #mtp.layout<[["dp"], []]>} : tensor<512x32xi32>
      %4 = mtp.embedding_grad "wte.dw"(%3, %arg0) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<512x32xi32>, tensor<512x32x64xbf16>) -> tensor<512x64xbf16>
      mtp.accumulate "wte.weight", %4 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<512x64xbf16>
      mtp.yield {layouts = []}
    }
    mtp.yield %2 : tensor<512x32x64xbf16> {layouts = [#mtp.layout<[["dp"], [], []]>]}
  }
  mtp.segment @h repeat 2 (%arg0: tensor<512x32x64xbf16>) attributes {layouts = [#mtp.layout<[["dp"], [], []]>]} {
    %0 = mtp.parameter "h.*.ln_1.weight" {init = "ones", layout = #mtp.layout<[[]]>} : tensor<64xbf16>
    %1 = mtp.rms_norm "h.*.ln_1"(%arg0, %0) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<512x32x64xbf16>, tensor<64xbf16>) -> tensor<512x32x64xbf16>
    %2 = mtp.parameter "h.*.attn.q.weight" {layout = #mtp.layout<[[], []]>} : tensor<64x64xbf16>
    %3 = mtp.einsum "h.*.attn.q" "bsi,io->bso"(%1, %2) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<64x64xbf16>) -> tensor<512x32x64xbf16>
    %4 = mtp.parameter "h.*.attn.k.weight" {layout = #mtp.layout<[[], []]>} : tensor<64x64xbf16>
    %5 = mtp.einsum "h.*.attn.k" "bsi,io->bso"(%1, %4) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<64x64xbf16>) -> tensor<512x32x64xbf16>
    %6 = mtp.parameter "h.*.attn.v.weight" {layout = #mtp.layout<[[], []]>} : tensor<64x64xbf16>
    %7 = mtp.einsum "h.*.attn.v" "bsi,io->bso"(%1, %6) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<64x64xbf16>) -> tensor<512x32x64xbf16>
    %8 = mtp.rope "h.*.attn.q_rope"(%3) {head_dim = 8 : i64, mtp.strategy = #mtp.strategy<"dp" = "b">, rotary_dim = 8 : i64, theta = 1.000000e+04 : f64} : tensor<512x32x64xbf16>
    %9 = mtp.rope "h.*.attn.k_rope"(%5) {head_dim = 8 : i64, mtp.strategy = #mtp.strategy<"dp" = "b">, rotary_dim = 8 : i64, theta = 1.000000e+04 : f64} : tensor<512x32x64xbf16>
    %result, %lse = mtp.attention "h.*.attn.core"(%8, %9, %7) {causal = true, head_dim = 8 : i64, mask = "h.*.attn.core", mtp.strategy = #mtp.strategy<"dp" = "b">, rate = 0.000000e+00 : f64, scale = 0.35355339059327373 : f64} : (tensor<512x32x64xbf16>, tensor<512x32x64xbf16>, tensor<512x32x64xbf16>) -> (tensor<512x32x64xbf16>, tensor<512x32x8xf32>)
    %10 = mtp.parameter "h.*.attn.proj.weight" {init = "residual", layout = #mtp.layout<[[], []]>} : tensor<64x64xbf16>
    %11 = mtp.einsum "h.*.attn.proj" "bsi,io->bso"(%result, %10) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<64x64xbf16>) -> tensor<512x32x64xbf16>
    %12 = mtp.add "h.*.attn.add"(%arg0, %11) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<512x32x64xbf16>
    %13 = mtp.parameter "h.*.ln_2.weight" {init = "ones", layout = #mtp.layout<[[]]>} : tensor<64xbf16>
    %14 = mtp.rms_norm "h.*.ln_2"(%12, %13) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<512x32x64xbf16>, tensor<64xbf16>) -> tensor<512x32x64xbf16>
    %15 = mtp.parameter "h.*.mlp.gate.weight" {layout = #mtp.layout<[[], []]>} : tensor<64x192xbf16>
    %16 = mtp.einsum "h.*.mlp.gate" "bsi,io->bso"(%14, %15) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<64x192xbf16>) -> tensor<512x32x192xbf16>
    %17 = mtp.parameter "h.*.mlp.up.weight" {layout = #mtp.layout<[[], []]>} : tensor<64x192xbf16>
    %18 = mtp.einsum "h.*.mlp.up" "bsi,io->bso"(%14, %17) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<64x192xbf16>) -> tensor<512x32x192xbf16>
    %19 = mtp.swiglu "h.*.mlp.act"(%16, %18) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<512x32x192xbf16>
    %20 = mtp.parameter "h.*.mlp.down.weight" {init = "residual", layout = #mtp.layout<[[], []]>} : tensor<192x64xbf16>
    %21 = mtp.einsum "h.*.mlp.down" "bsi,io->bso"(%19, %20) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x192xbf16>, tensor<192x64xbf16>) -> tensor<512x32x64xbf16>
    %22 = mtp.add "h.*.mlp.add"(%12, %21) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<512x32x64xbf16>
    mtp.backward (%arg1: tensor<512x32x64xbf16>) attributes {layouts = [#mtp.layout<[["dp"], [], []]>]} {
      %23 = mtp.einsum "h.*.mlp.down.dx" "bso,io->bsi"(%arg1, %20) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<192x64xbf16>) -> tensor<512x32x192xbf16>
      %24 = mtp.einsum "h.*.mlp.down.dw" "bsi,bso->io"(%19, %arg1) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x192xbf16>, tensor<512x32x64xbf16>) -> tensor<192x64xbf16>
      mtp.accumulate "h.*.mlp.down.weight", %24 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<192x64xbf16>
      %gate_gradient, %up_gradient = mtp.swiglu_grad "h.*.mlp.act.grad"(%16, %18, %23) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<512x32x192xbf16>
      %25 = mtp.einsum "h.*.mlp.up.dx" "bso,io->bsi"(%up_gradient, %17) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x192xbf16>, tensor<64x192xbf16>) -> tensor<512x32x64xbf16>
      %26 = mtp.einsum "h.*.mlp.up.dw" "bsi,bso->io"(%14, %up_gradient) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<512x32x192xbf16>) -> tensor<64x192xbf16>
      mtp.accumulate "h.*.mlp.up.weight", %26 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x192xbf16>
      %27 = mtp.einsum "h.*.mlp.gate.dx" "bso,io->bsi"(%gate_gradient, %15) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x192xbf16>, tensor<64x192xbf16>) -> tensor<512x32x64xbf16>
      %28 = mtp.add "h.*.mlp.gate.sum"(%25, %27) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<512x32x64xbf16>
      %29 = mtp.einsum "h.*.mlp.gate.dw" "bsi,bso->io"(%14, %gate_gradient) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<512x32x192xbf16>) -> tensor<64x192xbf16>
      mtp.accumulate "h.*.mlp.gate.weight", %29 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x192xbf16>
      %input_gradient, %gamma_gradient = mtp.rms_norm_grad "h.*.ln_2.grad"(%12, %13, %28) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<512x32x64xbf16>, tensor<64xbf16>, tensor<512x32x64xbf16>) -> (tensor<512x32x64xbf16>, tensor<64xbf16>)
      %30 = mtp.add "h.*.ln_2.sum"(%arg1, %input_gradient) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<512x32x64xbf16>
      mtp.accumulate "h.*.ln_2.weight", %gamma_gradient {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
      %31 = mtp.einsum "h.*.attn.proj.dx" "bso,io->bsi"(%30, %10) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<64x64xbf16>) -> tensor<512x32x64xbf16>
      %32 = mtp.einsum "h.*.attn.proj.dw" "bsi,bso->io"(%result, %30) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<512x32x64xbf16>) -> tensor<64x64xbf16>
      mtp.accumulate "h.*.attn.proj.weight", %32 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
      %query_gradient, %key_gradient, %value_gradient = mtp.attention_grad "h.*.attn.core.grad"(%8, %9, %7, %result, %lse, %31) {causal = true, head_dim = 8 : i64, mask = "h.*.attn.core", mtp.strategy = #mtp.strategy<"dp" = "b">, rate = 0.000000e+00 : f64, scale = 0.35355339059327373 : f64} : (tensor<512x32x64xbf16>, tensor<512x32x64xbf16>, tensor<512x32x64xbf16>, tensor<512x32x64xbf16>, tensor<512x32x8xf32>, tensor<512x32x64xbf16>) -> (tensor<512x32x64xbf16>, tensor<512x32x64xbf16>, tensor<512x32x64xbf16>)
      %33 = mtp.rope "h.*.attn.k_rope.dx"(%key_gradient) {head_dim = 8 : i64, inverse, mtp.strategy = #mtp.strategy<"dp" = "b">, rotary_dim = 8 : i64, theta = 1.000000e+04 : f64} : tensor<512x32x64xbf16>
      %34 = mtp.rope "h.*.attn.q_rope.dx"(%query_gradient) {head_dim = 8 : i64, inverse, mtp.strategy = #mtp.strategy<"dp" = "b">, rotary_dim = 8 : i64, theta = 1.000000e+04 : f64} : tensor<512x32x64xbf16>
      %35 = mtp.einsum "h.*.attn.v.dx" "bso,io->bsi"(%value_gradient, %6) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<64x64xbf16>) -> tensor<512x32x64xbf16>
      %36 = mtp.einsum "h.*.attn.v.dw" "bsi,bso->io"(%1, %value_gradient) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<512x32x64xbf16>) -> tensor<64x64xbf16>
      mtp.accumulate "h.*.attn.v.weight", %36 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
      %37 = mtp.einsum "h.*.attn.k.dx" "bso,io->bsi"(%33, %4) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<64x64xbf16>) -> tensor<512x32x64xbf16>
      %38 = mtp.add "h.*.attn.k.sum"(%35, %37) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<512x32x64xbf16>
      %39 = mtp.einsum "h.*.attn.k.dw" "bsi,bso->io"(%1, %33) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<512x32x64xbf16>) -> tensor<64x64xbf16>
      mtp.accumulate "h.*.attn.k.weight", %39 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
      %40 = mtp.einsum "h.*.attn.q.dx" "bso,io->bsi"(%34, %2) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<64x64xbf16>) -> tensor<512x32x64xbf16>
      %41 = mtp.add "h.*.attn.q.sum"(%38, %40) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<512x32x64xbf16>
      %42 = mtp.einsum "h.*.attn.q.dw" "bsi,bso->io"(%1, %34) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<512x32x64xbf16>) -> tensor<64x64xbf16>
      mtp.accumulate "h.*.attn.q.weight", %42 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
      %input_gradient_0, %gamma_gradient_1 = mtp.rms_norm_grad "h.*.ln_1.grad"(%arg0, %0, %41) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<512x32x64xbf16>, tensor<64xbf16>, tensor<512x32x64xbf16>) -> (tensor<512x32x64xbf16>, tensor<64xbf16>)
      %43 = mtp.add "h.*.ln_1.sum"(%30, %input_gradient_0) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : tensor<512x32x64xbf16>
      mtp.accumulate "h.*.ln_1.weight", %gamma_gradient_1 {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
      mtp.yield %43 : tensor<512x32x64xbf16> {layouts = [#mtp.layout<[["dp"], [], []]>]}
    }
    mtp.yield %22 : tensor<512x32x64xbf16> {layouts = [#mtp.layout<[["dp"], [], []]>]}
  }
  mtp.segment @head (%arg0: tensor<512x32x64xbf16>) attributes {layouts = [#mtp.layout<[["dp"], [], []]>]} {
    %0 = mtp.input "count" dims [] {layout = #mtp.layout<[]>} : tensor<f32>
    %1 = mtp.input "targets" dims ["batch", "sequence"] below 500 {layout = #mtp.layout<[["dp"], []]>} : tensor<512x32xi32>
    %2 = mtp.parameter "ln_f.weight" {init = "ones", layout = #mtp.layout<[[]]>} : tensor<64xbf16>
    %3 = mtp.rms_norm "ln_f"(%arg0, %2) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<512x32x64xbf16>, tensor<64xbf16>) -> tensor<512x32x64xbf16>
    %4 = mtp.parameter "lm_head.weight" {layout = #mtp.layout<[[], []]>} : tensor<64x512xbf16>
    %5 = mtp.einsum "lm_head" "bsi,iv->bsv"(%3, %4) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<64x512xbf16>) -> tensor<512x32x512xbf16>
    %6 = mtp.vocab_max "loss.max"(%5) {classes = 500 : i64, mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<512x32x512xbf16>) -> tensor<512x32xf32>
    %7 = mtp.vocab_sum_exp "loss.sum_exp"(%5, %6) {classes = 500 : i64, mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<512x32x512xbf16>, tensor<512x32xf32>) -> tensor<512x32xf32>
    %8 = mtp.vocab_pick "loss.pick"(%5, %1) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<512x32x512xbf16>, tensor<512x32xi32>) -> tensor<512x32xf32>
    %9 = mtp.token_loss "loss"(%6, %7, %8, %1, %0) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<512x32xf32>, tensor<512x32xf32>, tensor<512x32xf32>, tensor<512x32xi32>, tensor<f32>) -> tensor<f32>
    mtp.accumulate "loss", %9 {layout = #mtp.layout<[], partial = ["dp"]>} : tensor<f32>
    mtp.backward () attributes {layouts = []} {
      %10 = mtp.input "count" dims [] {layout = #mtp.layout<[]>} : tensor<f32>
      %11 = mtp.input "targets" dims ["batch", "sequence"] below 500 {layout = #mtp.layout<[["dp"], []]>} : tensor<512x32xi32>
      %12 = mtp.cross_entropy_grad "loss.grad"(%5, %6, %7, %11, %10) {classes = 500 : i64, mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<512x32x512xbf16>, tensor<512x32xf32>, tensor<512x32xf32>, tensor<512x32xi32>, tensor<f32>) -> tensor<512x32x512xbf16>
      %13 = mtp.einsum "lm_head.dx" "bsv,iv->bsi"(%12, %4) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x512xbf16>, tensor<64x512xbf16>) -> tensor<512x32x64xbf16>
      %14 = mtp.einsum "lm_head.dw" "bsi,bsv->iv"(%3, %12) {mtp.strategy = #mtp.strategy<"dp" = "b">} : (tensor<512x32x64xbf16>, tensor<512x32x512xbf16>) -> tensor<64x512xbf16>
      mtp.accumulate "lm_head.weight", %14 {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x512xbf16>
      %input_gradient, %gamma_gradient = mtp.rms_norm_grad "ln_f.grad"(%arg0, %2, %13) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<512x32x64xbf16>, tensor<64xbf16>, tensor<512x32x64xbf16>) -> (tensor<512x32x64xbf16>, tensor<64xbf16>)
      mtp.accumulate "ln_f.weight", %gamma_gradient {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
      mtp.yield %input_gradient : tensor<512x32x64xbf16> {layouts = [#mtp.layout<[["dp"], [], []]>]}
    }
    mtp.yield {layouts = []}
  }
  mtp.update {
    %0 = mtp.accumulated "wte.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<512x64xbf16>
    %1 = mtp.reshard %0 from <[[], []], partial = ["dp"]> to <[[], []]> cause "wte.weight" : tensor<512x64xbf16>
    mtp.adamw "wte.weight", %1 {decay} : tensor<512x64xbf16>
    %2 = mtp.accumulated "h.*.ln_1.weight" {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
    %3 = mtp.reshard %2 from <[[]], partial = ["dp"]> to <[[]]> cause "h.*.ln_1.weight" : tensor<64xbf16>
    mtp.adamw "h.*.ln_1.weight", %3 : tensor<64xbf16>
    %4 = mtp.accumulated "h.*.attn.q.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
    %5 = mtp.reshard %4 from <[[], []], partial = ["dp"]> to <[[], []]> cause "h.*.attn.q.weight" : tensor<64x64xbf16>
    mtp.adamw "h.*.attn.q.weight", %5 {decay} : tensor<64x64xbf16>
    %6 = mtp.accumulated "h.*.attn.k.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
    %7 = mtp.reshard %6 from <[[], []], partial = ["dp"]> to <[[], []]> cause "h.*.attn.k.weight" : tensor<64x64xbf16>
    mtp.adamw "h.*.attn.k.weight", %7 {decay} : tensor<64x64xbf16>
    %8 = mtp.accumulated "h.*.attn.v.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
    %9 = mtp.reshard %8 from <[[], []], partial = ["dp"]> to <[[], []]> cause "h.*.attn.v.weight" : tensor<64x64xbf16>
    mtp.adamw "h.*.attn.v.weight", %9 {decay} : tensor<64x64xbf16>
    %10 = mtp.accumulated "h.*.attn.proj.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x64xbf16>
    %11 = mtp.reshard %10 from <[[], []], partial = ["dp"]> to <[[], []]> cause "h.*.attn.proj.weight" : tensor<64x64xbf16>
    mtp.adamw "h.*.attn.proj.weight", %11 {decay} : tensor<64x64xbf16>
    %12 = mtp.accumulated "h.*.ln_2.weight" {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
    %13 = mtp.reshard %12 from <[[]], partial = ["dp"]> to <[[]]> cause "h.*.ln_2.weight" : tensor<64xbf16>
    mtp.adamw "h.*.ln_2.weight", %13 : tensor<64xbf16>
    %14 = mtp.accumulated "h.*.mlp.gate.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x192xbf16>
    %15 = mtp.reshard %14 from <[[], []], partial = ["dp"]> to <[[], []]> cause "h.*.mlp.gate.weight" : tensor<64x192xbf16>
    mtp.adamw "h.*.mlp.gate.weight", %15 {decay} : tensor<64x192xbf16>
    %16 = mtp.accumulated "h.*.mlp.up.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x192xbf16>
    %17 = mtp.reshard %16 from <[[], []], partial = ["dp"]> to <[[], []]> cause "h.*.mlp.up.weight" : tensor<64x192xbf16>
    mtp.adamw "h.*.mlp.up.weight", %17 {decay} : tensor<64x192xbf16>
    %18 = mtp.accumulated "h.*.mlp.down.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<192x64xbf16>
    %19 = mtp.reshard %18 from <[[], []], partial = ["dp"]> to <[[], []]> cause "h.*.mlp.down.weight" : tensor<192x64xbf16>
    mtp.adamw "h.*.mlp.down.weight", %19 {decay} : tensor<192x64xbf16>
    %20 = mtp.accumulated "ln_f.weight" {layout = #mtp.layout<[[]], partial = ["dp"]>} : tensor<64xbf16>
    %21 = mtp.reshard %20 from <[[]], partial = ["dp"]> to <[[]]> cause "ln_f.weight" : tensor<64xbf16>
    mtp.adamw "ln_f.weight", %21 : tensor<64xbf16>
    %22 = mtp.accumulated "lm_head.weight" {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<64x512xbf16>
    %23 = mtp.reshard %22 from <[[], []], partial = ["dp"]> to <[[], []]> cause "lm_head.weight" : tensor<64x512xbf16>
    mtp.adamw "lm_head.weight", %23 {decay} : tensor<64x512xbf16>
    %24 = mtp.accumulated "loss" {layout = #mtp.layout<[], partial = ["dp"]>} : tensor<f32>
    %25 = mtp.reshard %24 from <[], partial = ["dp"]> to <[]> cause "loss" : tensor<f32>
    mtp.result "loss", %25 : tensor<f32>
  }
}

