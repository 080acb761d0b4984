# MTPLAN_FROM_MACHINE matches the libraries that packages do not contain, because
# the machine on which they run provides them: the C library, CUDA's and MPI's.
set(MTPLAN_FROM_MACHINE
  "^(ld-linux|lib(c|m|mvec|dl|rt|pthread|resolv|util|anl)\\.so)"
  "^lib(cuda|cublas|cublasLt|cudnn|nccl|nvrtc|nvidia|mpi)[-_.a-z]*\\.so")
