// The gRPC status for each Fault.
#include "weir/protocol/grpc/rls_messages.h"

namespace weir::rls {

std::optional<Refusal> refusal_of(const Error& error) {
  switch (error.fault) {
    case Fault::timeout:
    case Fault::unavailable:
      return {};
    case Fault::overloaded:
      // The proxy decides (failure_mode_deny).
      return Refusal{grpc::Status::unavailable, error.detail};
    case Fault::invalid:
      return Refusal{grpc::Status::invalid_argument, error.detail};
    case Fault::too_large:
      return Refusal{grpc::Status::resource_exhausted, error.detail};
    case Fault::unknown:
      return Refusal{grpc::Status::not_found, error.detail};
    case Fault::internal:
      break;
  }
  return Refusal{grpc::Status::internal, "the server failed; its log says why"};
}

}  // namespace weir::rls
