//===- nccl_calls.cpp - NCCL's collectives and messages -------------------===//

#include "tests/emulator/nccl_clique.h"

using namespace mtplan::emulator;

// Parameters have the names of the library's header.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return callNccl(comm, stream,
                  {Kind::allReduce, sendbuff, recvbuff, count, datatype, op});
}
ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count,
                        ncclDataType_t datatype, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return callNccl(
      comm, stream,
      {Kind::reduce, sendbuff, recvbuff, count, datatype, op, root});
}
ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return callNccl(
      comm, stream,
      {Kind::broadcast, sendbuff, recvbuff, count, datatype, ncclSum, root});
}
ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff,
                           size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream) {
  return callNccl(comm, stream,
                  {Kind::allGather, sendbuff, recvbuff, sendcount, datatype});
}
ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff,
                               size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return callNccl(
      comm, stream,
      {Kind::reduceScatter, sendbuff, recvbuff, recvcount, datatype, op});
}
ncclResult_t ncclSend(const void *sendbuff, size_t count,
                      ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return callNccl(
      comm, stream,
      {Kind::send, sendbuff, nullptr, count, datatype, ncclSum, peer});
}
ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype,
                      int peer, ncclComm_t comm, cudaStream_t stream) {
  return callNccl(
      comm, stream,
      {Kind::receive, nullptr, recvbuff, count, datatype, ncclSum, peer});
}

} // extern "C"
// NOLINTEND(readability-identifier-naming)
